/** The organization a task belongs to: its id names everything stored, its name is what people see. */
export interface OrganizationReference {
  readonly id: string;
  readonly name: string;
}

/** The runtimes a version may ask for. Every Node one runs on the service's own Node. */
export type Runtime =
  | 'NODEJS20_X'
  | 'NODEJS22_X'
  | 'NODEJS24_X'
  | 'NODEJS26_X'
  | 'JAVA21'
  | 'PYTHON3'
  | 'PROVIDED';

/** A version of a task with all that is needed to run it. */
export interface RunnableVersion {
  readonly organization: OrganizationReference;
  readonly taskId: string;
  readonly version: string;
  readonly runtime: Runtime;
  readonly handler: string;
  /** Where the code is unpacked, read-only. */
  readonly codeDirectory: string;
  readonly memoryMb: number;
  readonly timeoutSec: number;
  readonly concurrency: number;
  readonly environment: Readonly<Record<string, string>>;
  /** The task's own API key. */
  readonly apiKey: string;
}
