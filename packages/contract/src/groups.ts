import type { OperationGroup } from './operation.ts';

/** What each group of operations is for, in a sentence. */
export const groupDescriptions: Readonly<Record<OperationGroup, string>> = {
  Authentication: 'Accounts of people: sign up, sign in, one-time codes and passwords.',
  Organizations: 'Organizations, their members and their rate limit.',
  'API keys': 'Credentials for programs, each good for one organization.',
  Tasks: 'Your own code, deployed as versions and run on the messages of its streams.',
  Topics: 'Where messages go: files for SQL, streams for tasks, keyed state.',
  Publishing: 'Put messages into topics, and watch them arrive.',
  State: 'Keyed entries that tasks and programs share.',
  Query: 'SQL over everything that was published to topics with batch.',
  Service: 'The service itself.',
};
