import type { NamedType } from '@millrace/contract';

export type Runtime = NonNullable<NamedType<'DeployRequest'>['runtime']>;

/** What code can be run by; a test holds the list to the contract, which this program does not load. */
export const runtimes: readonly Runtime[] = [
  'NODEJS20_X',
  'NODEJS22_X',
  'NODEJS24_X',
  'NODEJS26_X',
  'PYTHON3',
  'JAVA21',
  'PROVIDED',
];

/** Of code that does not say otherwise. */
export const usualRuntime: Runtime = 'NODEJS26_X';

export function isNode(runtime: Runtime): boolean {
  return runtime.startsWith('NODEJS');
}
