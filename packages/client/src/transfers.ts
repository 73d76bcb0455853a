import type { Transport } from './transport.ts';

/** How far an upload or download has come. */
export interface Progress {
  readonly bytes: number;
  /** Undefined when the other side does not say how much there is. */
  readonly total: number | undefined;
}

export interface TransferOptions {
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What can be uploaded: bytes, a file of a browser, or a stream whose length is known. */
export type Uploadable =
  | Uint8Array<ArrayBuffer>
  | Blob
  | { readonly stream: ReadableStream<Uint8Array>; readonly size: number };

const inBrowser = 'XMLHttpRequest' in globalThis;

export function sizeOf(content: Uploadable): number {
  return content instanceof Uint8Array ? content.byteLength : content.size;
}

/** Sends exactly these bytes to a URL that takes one upload. */
export async function upload(
  transport: Transport,
  url: string,
  content: Uploadable,
  options: TransferOptions = {},
): Promise<void> {
  const total = sizeOf(content);
  const { onProgress } = options;
  const isStream = !(content instanceof Uint8Array || content instanceof Blob);
  // Browsers send streams over HTTP/2 only, so there it is sent whole, and progress is told at its end.
  if (inBrowser || (onProgress === undefined && !isStream)) {
    const body = isStream ? await new Response(content.stream).blob() : content;
    const response = await transport.openUrl(url, { method: 'PUT', body }, options.signal);
    await response.body?.cancel();
    return onProgress?.({ bytes: total, total });
  }
  const source = isStream ? content.stream : new Blob([content]).stream();
  const init: RequestInit & { duplex: 'half' } = {
    method: 'PUT',
    body: counted(source, total, onProgress),
    headers: { 'content-length': String(total) },
    duplex: 'half',
  };
  const response = await transport.openUrl(url, init, options.signal);
  await response.body?.cancel();
}

/** The bytes behind a URL as a stream. */
export async function download(
  transport: Transport,
  url: string,
  options: TransferOptions = {},
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const response = await transport.openUrl(url, { method: 'GET' }, options.signal);
  const length = response.headers.get('content-length');
  const body = response.body ?? new Blob([]).stream();
  return counted(body, length === null ? undefined : Number(length), options.onProgress);
}

function counted<Chunk extends Uint8Array>(
  stream: ReadableStream<Chunk>,
  total: number | undefined,
  onProgress: TransferOptions['onProgress'],
): ReadableStream<Chunk> {
  if (onProgress === undefined) return stream;
  let bytes = 0;
  return stream.pipeThrough(
    new TransformStream<Chunk, Chunk>({
      transform(chunk, controller) {
        bytes += chunk.byteLength;
        onProgress({ bytes, total });
        controller.enqueue(chunk);
      },
    }),
  );
}
