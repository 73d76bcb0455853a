import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto';
import type { Random } from '../platform/random.ts';

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Keeps the secrets of task keys so that a version can run after a restart, and a copy of its row alone is
 * worth nothing. What a secret belongs to is sealed with it, so that it cannot be moved to another row.
 */
export interface Sealing {
  seal(text: string, belongsTo: string): string;
  /** Throws when it was altered, moved, or sealed with another secret. */
  open(sealed: string, belongsTo: string): string;
}

export function sealing(secret: string, random: Random): Sealing {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'millrace task keys', 32));
  return {
    seal(text, belongsTo) {
      const nonce = random.bytes(nonceBytes);
      const cipher = createCipheriv(algorithm, key, nonce);
      cipher.setAAD(Buffer.from(belongsTo));
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url');
    },
    open(sealed, belongsTo) {
      const bytes = Buffer.from(sealed, 'base64url');
      const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      });
      decipher.setAAD(Buffer.from(belongsTo));
      decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
      const body = bytes.subarray(nonceBytes + tagBytes);
      return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
    },
  };
}
