/** The lake cannot do what was asked for now; the message is for a person. */
export class LakeUnavailableError extends Error {
  override readonly name = 'LakeUnavailableError';
}
