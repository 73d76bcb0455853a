/** What the service tells a handler about the call. */
export interface TaskContext {
  readonly awsRequestId: string;
  readonly functionName: string;
  readonly functionVersion: string;
  readonly memoryLimitInMB?: string;
  /** Milliseconds until the call is ended. */
  getRemainingTimeInMillis(): number;
}
