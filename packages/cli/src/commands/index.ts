import type { Command } from '../command.ts';
import { accountCommands } from './account.ts';
import { organizationCommands } from './organizations.ts';
import { queryCommands } from './query.ts';
import { stateCommands } from './state.ts';
import { toolCommands } from './tools.ts';
import { topicCommands } from './topics.ts';

/** Every command, in the order of help. */
export const commands: readonly Command[] = [
  ...accountCommands,
  ...organizationCommands,
  ...topicCommands,
  ...stateCommands,
  ...queryCommands,
  ...toolCommands,
];
