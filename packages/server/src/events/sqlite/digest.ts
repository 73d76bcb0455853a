/** The digest of an id: four words, which lie in a buffer with the highest byte of each first. */
export type Digest = Uint32Array;

export const digestBytes = 16;

export function readDigest(source: Buffer, start: number, digest: Digest): void {
  for (let word = 0; word < 4; word += 1) digest[word] = source.readUInt32BE(start + 4 * word);
}

export function writeDigest(digest: Digest, target: Buffer, start: number): void {
  for (let word = 0; word < 4; word += 1) target.writeUInt32BE(digest[word] ?? 0, start + 4 * word);
}
