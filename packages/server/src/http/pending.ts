import type { OperationId } from '@millrace/contract';

/**
 * The operations of the interface that this version does not have yet. They are checked like all others
 * (credential, role, parameters, body) and then answer 501.
 */
export const pendingOperations = [] as const satisfies readonly OperationId[];

export type PendingOperation = (typeof pendingOperations)[number];
