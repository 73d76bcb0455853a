/** What the process answers with. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  notFound: 4,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** What each means, for help and the reference. */
export const exitCodeMeanings: readonly (readonly [ExitCode, string])[] = [
  [exitCodes.ok, 'it worked'],
  [exitCodes.failed, 'the service or the network refused, or something is wrong here'],
  [exitCodes.usage, 'the command was not used as it is meant to be'],
  [exitCodes.refused, 'not signed in, or not allowed (401, 403)'],
  [exitCodes.notFound, 'there is no such thing (404)'],
  [exitCodes.interrupted, 'interrupted, as by ctrl-C'],
];
