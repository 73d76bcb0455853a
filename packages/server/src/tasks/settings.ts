import type { NamedType } from '@millrace/contract';
import type { Runtime } from './version.ts';

/** What a person asks for when they deploy. */
export type DeployRequest = NamedType<'DeployRequest'>;

/** How the HTTP endpoint of a version may be called. */
export type EndpointSettings = NonNullable<DeployRequest['endpoint']>;

/** How a version runs, what it reads and where it writes: fixed when it is deployed. */
export interface VersionSettings {
  readonly runtime: Runtime;
  readonly handler: string;
  readonly inputQueueNames: readonly string[];
  readonly outputQueueNames: readonly string[];
  readonly endpoint?: EndpointSettings | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly memoryMb: number;
  readonly timeoutSec: number;
  readonly batchSize: number;
  readonly concurrency: number;
  readonly maxAttempts: number;
}

/** The settings of a request, with what it leaves out. */
export function settingsOf(request: DeployRequest): VersionSettings {
  return {
    runtime: request.runtime ?? 'NODEJS20_X',
    handler: request.handler,
    inputQueueNames: [...new Set(request.inputQueueNames)],
    outputQueueNames: [...new Set(request.outputQueueNames)],
    ...(request.endpoint === undefined ? {} : { endpoint: request.endpoint }),
    environment: request.environment ?? {},
    memoryMb: request.memoryMb ?? 256,
    timeoutSec: request.timeoutSec ?? 30,
    batchSize: request.batchSize ?? 10,
    concurrency: request.concurrency ?? 1,
    maxAttempts: request.maxAttempts ?? 5,
  };
}
