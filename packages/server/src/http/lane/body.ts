import type { IncomingMessage } from 'node:http';

/**
 * Reads a body of a known length. Most bodies arrive in one piece, right after their headers, and are handed on
 * as they are. Of a client that goes away before the end nothing more is heard, and there is nobody to answer.
 */
export function readBody(request: IncomingMessage, length: number, hear: (body: Buffer) => void): void {
  let missing = length;
  let pieces: Buffer[] | undefined;
  request.on('data', (piece: Buffer) => {
    missing -= piece.length;
    if (missing > 0) {
      pieces ??= [];
      pieces.push(piece);
    } else if (pieces === undefined) {
      hear(piece);
    } else {
      pieces.push(piece);
      hear(Buffer.concat(pieces, length));
    }
  });
}
