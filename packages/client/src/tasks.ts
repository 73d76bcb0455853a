import type { NamedType } from '@millrace/contract';
import { MillraceError } from './millrace-error.ts';
import { pages } from './pages.ts';
import { type OrganizationOptions, organizationOf, type Scope } from './scope.ts';
import { readEvents } from './server-sent-events.ts';
import { sizeOf, type TransferOptions, type Uploadable, upload } from './transfers.ts';
import { pause } from './transport.ts';

type Status = NamedType<'TaskStatus'>;
type LogLine = NamedType<'TaskLogs'>['lines'][number];
type DeadLetter = NamedType<'DeadLetters'>['entries'][number];

const checkMilliseconds = 200;
const mostRemembered = 10_000;

/** Your own code, deployed as versions and run on the messages of its streams. */
export class Tasks {
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Uploads a zip and deploys it as a new version; resolves when the version is deployed, and rejects with
   * the reason when it cannot be.
   *
   * @example
   * ```ts
   * const zip = new Uint8Array(await (await fetch('file:///enrich.zip')).arrayBuffer());
   * const { version } = await millrace.tasks.deploy('enrich', zip, {
   *   handler: 'index.handler', inputQueueNames: ['clicks'], outputQueueNames: ['enriched'], switchToNow: true,
   * });
   * ```
   */
  async deploy(
    taskId: string,
    code: Uploadable,
    request: Omit<NamedType<'DeployRequest'>, 'codeUrl'>,
    options: OrganizationOptions & TransferOptions = {},
  ): Promise<NamedType<'TaskVersion'>> {
    const { sessionId, codeUrl } = await this.upload(taskId, code, options);
    await this.deployUploaded(taskId, sessionId, { ...request, codeUrl }, options);
    for (;;) {
      const check = await this.check(taskId, sessionId, options);
      if (check.status === 'SUCCESS' && check.result !== undefined) return check.result;
      if (check.status === 'FAILED' || check.status === 'NOTFOUND') {
        const detail = check.errorStr ?? 'The deployment is not known any more.';
        throw new MillraceError({ code: 'DEPLOYMENT_FAILED', status: 200, detail });
      }
      await pause(checkMilliseconds, options.signal);
    }
  }

  /**
   * Uploads a zip without deploying it.
   *
   * @example
   * ```ts
   * const { sessionId, codeUrl } = await millrace.tasks.upload('enrich', new Blob(['the zip']));
   * ```
   */
  async upload(
    taskId: string,
    code: Uploadable,
    options: OrganizationOptions & TransferOptions = {},
  ): Promise<{ readonly sessionId: string; readonly codeUrl: string }> {
    const { sessionId, codeUrl, presignedUrl } = await this.#scope.transport.call('uploadCode', {
      path: { organizationName: organizationOf(this.#scope, options) },
      body: { taskId, contentLengthBytes: sizeOf(code) },
      signal: options.signal,
    });
    await upload(this.#scope.transport, presignedUrl, code, options);
    return { sessionId, codeUrl };
  }

  /**
   * Begins to deploy what was uploaded; `check` tells how it went.
   *
   * @example
   * ```ts
   * const { sessionId, codeUrl } = await millrace.tasks.upload('enrich', new Blob(['the zip']));
   * await millrace.tasks.deployUploaded('enrich', sessionId, {
   *   codeUrl, handler: 'index.handler', inputQueueNames: ['clicks'], outputQueueNames: [], switchToNow: true,
   * });
   * ```
   */
  async deployUploaded(
    taskId: string,
    sessionId: string,
    request: NamedType<'DeployRequest'>,
    options: OrganizationOptions = {},
  ): Promise<void> {
    await this.#scope.transport.call('deployVersion', {
      path: { ...this.#path(taskId, options), sessionId },
      headers: { invocationtype: 'Event' },
      body: request,
      signal: options.signal,
    });
  }

  /**
   * How a deployment went.
   *
   * @example
   * ```ts
   * const { status, errorStr } = await millrace.tasks.check('enrich', 'd8Jm2nXv5KpLw3RtYb7Zc1');
   * ```
   */
  check(
    taskId: string,
    sessionId: string,
    options: OrganizationOptions = {},
  ): Promise<NamedType<'DeployVersionCheckResponse'>> {
    return this.#scope.transport.call('deployVersionCheck', {
      path: { ...this.#path(taskId, options), sessionId },
      signal: options.signal,
    });
  }

  /**
   * The status of a task.
   *
   * @example
   * ```ts
   * const { status, version } = await millrace.tasks.status('enrich');
   * ```
   */
  status(taskId: string, options: OrganizationOptions = {}): Promise<Status> {
    return this.#scope.transport.call('status', {
      path: this.#path(taskId, options),
      signal: options.signal,
    });
  }

  /**
   * The status of every task, page after page.
   *
   * @example
   * ```ts
   * for await (const task of millrace.tasks.list()) console.log(task.taskId, task.status);
   * ```
   */
  list(options: OrganizationOptions = {}): AsyncGenerator<Status, void> {
    return pages(async (cursor: string | undefined) => {
      const page = await this.#scope.transport.call('statusAll', {
        path: { organizationName: organizationOf(this.#scope, options) },
        query: cursor === undefined ? {} : { cursor },
        signal: options.signal,
      });
      return { entries: page.tasks, next: page.cursor };
    });
  }

  /**
   * The versions of a task.
   *
   * @example
   * ```ts
   * const { versions } = await millrace.tasks.versions('enrich');
   * ```
   */
  versions(taskId: string, options: OrganizationOptions = {}): Promise<NamedType<'TaskVersions'>> {
    return this.#scope.transport.call('getVersions', {
      path: this.#path(taskId, options),
      signal: options.signal,
    });
  }

  /**
   * Makes a version the active one.
   *
   * @example
   * ```ts
   * await millrace.tasks.activate('enrich', '2');
   * ```
   */
  activate(taskId: string, version: string, options: OrganizationOptions = {}): Promise<Status> {
    return this.#scope.transport.call('activateVersion', {
      path: this.#path(taskId, options),
      query: { version },
      signal: options.signal,
    });
  }

  /**
   * Pauses a task; its messages wait.
   *
   * @example
   * ```ts
   * await millrace.tasks.pause('enrich');
   * ```
   */
  pause(taskId: string, options: OrganizationOptions = {}): Promise<Status> {
    return this.#scope.transport.call('pause', { path: this.#path(taskId, options), signal: options.signal });
  }

  /**
   * Resumes a paused task.
   *
   * @example
   * ```ts
   * await millrace.tasks.resume('enrich');
   * ```
   */
  resume(taskId: string, options: OrganizationOptions = {}): Promise<Status> {
    return this.#scope.transport.call('resume', {
      path: this.#path(taskId, options),
      signal: options.signal,
    });
  }

  /**
   * Deletes a task with all its versions.
   *
   * @example
   * ```ts
   * await millrace.tasks.delete('enrich');
   * ```
   */
  delete(taskId: string, options: OrganizationOptions = {}): Promise<Status> {
    return this.#scope.transport.call('delete', {
      path: this.#path(taskId, options),
      signal: options.signal,
    });
  }

  /**
   * Runs a task once with a given event.
   *
   * @example
   * ```ts
   * const { result, error, logs } = await millrace.tasks.invoke('enrich', { page: '/pricing' });
   * ```
   */
  invoke(
    taskId: string,
    event: unknown,
    options: OrganizationOptions = {},
  ): Promise<NamedType<'InvokeResponse'>> {
    return this.#scope.transport.call('invoke', {
      path: this.#path(taskId, options),
      body: { event },
      signal: options.signal,
    });
  }

  /**
   * What a task printed, oldest first, page after page.
   *
   * @example
   * ```ts
   * for await (const line of millrace.tasks.logs('enrich', { since: new Date(Date.now() - 60_000) })) console.log(line.text);
   * ```
   */
  logs(
    taskId: string,
    options: OrganizationOptions & { readonly since?: Date | undefined } = {},
  ): AsyncGenerator<LogLine, void> {
    const { since, signal } = options;
    return pages(async (cursor: string | undefined) => {
      const page = await this.#scope.transport.call('taskLogs', {
        path: this.#path(taskId, options),
        query: {
          limit: 1000,
          ...(since === undefined ? {} : { since: since.toISOString() }),
          ...(cursor === undefined ? {} : { cursor }),
        },
        signal,
      });
      return { entries: page.lines, next: page.nextCursor };
    });
  }

  /**
   * What a task prints from now on, or from some time in the past on, until the loop is left or the signal
   * ends it.
   *
   * @example
   * ```ts
   * for await (const line of millrace.tasks.followLogs('enrich')) console.log(line.time, line.text);
   * ```
   */
  async *followLogs(
    taskId: string,
    options: OrganizationOptions & { readonly since?: Date | undefined } = {},
  ): AsyncGenerator<LogLine, void> {
    const response = await this.#scope.transport.open('taskLogs', {
      path: this.#path(taskId, options),
      accept: 'text/event-stream',
      signal: options.signal,
    });
    // The past is read while the present is heard already: no line is missed, and the first may come twice.
    const told = new Map<string, number>();
    if (options.since !== undefined) {
      for await (const line of this.logs(taskId, options)) {
        const text = JSON.stringify(line);
        told.set(text, (told.get(text) ?? 0) + 1);
        if (told.size > mostRemembered) told.delete(told.keys().next().value ?? '');
        yield line;
      }
    }
    for await (const { data } of readEvents(response)) {
      const line: LogLine = JSON.parse(data);
      const times = told.get(JSON.stringify(line)) ?? 0;
      if (times === 0) {
        told.clear();
        yield line;
      } else told.set(JSON.stringify(line), times - 1);
    }
  }

  /**
   * Messages that the task gave up on, page after page.
   *
   * @example
   * ```ts
   * for await (const letter of millrace.tasks.deadLetters('enrich')) console.log(letter.id, letter.error);
   * ```
   */
  deadLetters(taskId: string, options: OrganizationOptions = {}): AsyncGenerator<DeadLetter, void> {
    return pages(async (cursor: string | undefined) => {
      const page = await this.#scope.transport.call('listDeadLetters', {
        path: this.#path(taskId, options),
        query: cursor === undefined ? {} : { cursor },
        signal: options.signal,
      });
      return { entries: page.entries, next: page.nextCursor };
    });
  }

  /**
   * Gives dead letters to the task again: these, or all.
   *
   * @example
   * ```ts
   * const redriven = await millrace.tasks.redrive('enrich');
   * ```
   */
  async redrive(
    taskId: string,
    options: OrganizationOptions & { readonly ids?: readonly string[] } = {},
  ): Promise<number> {
    const { redriven } = await this.#scope.transport.call('redriveDeadLetters', {
      path: this.#path(taskId, options),
      body: options.ids === undefined ? {} : { ids: [...options.ids] },
      signal: options.signal,
    });
    return redriven;
  }

  /**
   * Throws the dead letters of a task away.
   *
   * @example
   * ```ts
   * const purged = await millrace.tasks.purge('enrich');
   * ```
   */
  async purge(taskId: string, options: OrganizationOptions = {}): Promise<number> {
    const { purged } = await this.#scope.transport.call('purgeDeadLetters', {
      path: this.#path(taskId, options),
      signal: options.signal,
    });
    return purged;
  }

  #path(taskId: string, options: OrganizationOptions) {
    return { organizationName: organizationOf(this.#scope, options), taskId };
  }
}
