import type { Command } from '../command.ts';
import { accountCommands } from './account.ts';
import { organizationCommands } from './organizations.ts';
import { projectCommands } from './project.ts';
import { queryCommands } from './query.ts';
import { serveCommands } from './serve.ts';
import { stateCommands } from './state.ts';
import { taskCommands } from './tasks.ts';
import { toolCommands } from './tools.ts';
import { topicCommands } from './topics.ts';

/** Every command, in the order of help. */
export const commands: readonly Command[] = [
  ...serveCommands,
  ...accountCommands,
  ...organizationCommands,
  ...topicCommands,
  ...projectCommands,
  ...taskCommands,
  ...stateCommands,
  ...queryCommands,
  ...toolCommands,
];
