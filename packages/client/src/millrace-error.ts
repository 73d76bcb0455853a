/** A place in the request that was refused. */
export interface RefusedField {
  /** A JSON pointer, such as `/body/keyParts/0`. */
  readonly pointer: string;
  readonly message: string;
}

/**
 * Whatever went wrong with a call: an answer of the service that is no success, or no answer at all.
 *
 * @example
 * ```ts
 * try {
 *   await millrace.topics.publish('clicks', { page: '/' }, { key: 'user-42' });
 * } catch (error) {
 *   if (error instanceof MillraceError && error.code === 'TOPIC_NOT_FOUND') console.error(error.detail);
 *   else throw error;
 * }
 * ```
 */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  /** Stable, upper snake case; programs may branch on it. `NETWORK` when there was no answer, `ORGANIZATION_MISSING` when none was asked. */
  readonly code: string;
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** What to do, for a person. */
  readonly detail: string;
  /** Names the request in the log of the service. */
  readonly requestId: string | undefined;
  /** Which parts of the request were refused. */
  readonly errors: readonly RefusedField[];
  /** How long to wait before trying again, when the service said so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    fields: {
      readonly code: string;
      readonly status: number;
      readonly detail: string;
      readonly requestId?: string | undefined;
      readonly errors?: readonly RefusedField[] | undefined;
      readonly retryAfterSeconds?: number | undefined;
    },
    options?: ErrorOptions,
  ) {
    super(fields.detail, options);
    this.code = fields.code;
    this.status = fields.status;
    this.detail = fields.detail;
    this.requestId = fields.requestId;
    this.errors = fields.errors ?? [];
    this.retryAfterSeconds = fields.retryAfterSeconds;
  }
}

/** The error that an answer stands for. */
export async function errorOf(response: Response): Promise<MillraceError> {
  const text = await response.text().catch(() => '');
  const fields = recordOf(text);
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  const detail = textOf(fields.detail) ?? (text.slice(0, 500) || `The service answered ${response.status}.`);
  return new MillraceError({
    code: textOf(fields.code) ?? 'UNEXPECTED_ANSWER',
    status: response.status,
    detail,
    requestId: response.headers.get('x-request-id') ?? undefined,
    errors: refusedFields(fields.errors),
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
  });
}

function recordOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function refusedFields(value: unknown): RefusedField[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry: unknown) => {
    if (typeof entry !== 'object' || entry === null) return [];
    const { pointer, message } = { pointer: undefined, message: undefined, ...entry };
    return typeof pointer === 'string' && typeof message === 'string' ? [{ pointer, message }] : [];
  });
}
