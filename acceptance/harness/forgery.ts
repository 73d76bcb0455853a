import { createHmac, createSign, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/** The parts of a token, as anybody who holds one can read them. */
export interface TokenParts {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly signature: string;
}

export function readToken(token: string): TokenParts {
  const [header = '', claims = '', signature = ''] = token.split('.');
  return { header: decode(header), claims: decode(claims), signature };
}

function decode(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
}

export function encode(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

type Signer = (input: string) => string;

/** Makes a token of a forger's choice. */
export function forge(header: object, claims: object, signer: Signer): string {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${signer(input)}`;
}

const edwards = generateKeyPairSync('ed25519');
const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });

/** The forger's own keys: they sign correctly, and nobody has reason to trust them. */
export const own = {
  publicJwk: edwards.publicKey.export({ format: 'jwk' }),
  edDsa: (input: string) => sign(null, Buffer.from(input), edwards.privateKey).toString('base64url'),
  es256: (input: string) =>
    createSign('sha256')
      .update(input)
      .sign({ key: elliptic.privateKey, dsaEncoding: 'ieee-p1363' })
      .toString('base64url'),
  rs256: (input: string) => createSign('sha256').update(input).sign(rsa.privateKey).toString('base64url'),
};

/** Signs with a secret that everybody knows, such as a published key. */
export function withSharedSecret(secret: string | Uint8Array): Signer {
  return (input) => createHmac('sha256', secret).update(input).digest('base64url');
}

/** A published key in every form that a careless verifier might take for a shared secret. */
export function formsOf(key: KeyObject, jwk: { readonly x?: string }): (string | Uint8Array)[] {
  const pem = key.export({ format: 'pem', type: 'spki' }).toString();
  return [
    pem,
    pem.trim(),
    key.export({ format: 'der', type: 'spki' }),
    Buffer.from(jwk.x ?? '', 'base64url'),
    jwk.x ?? '',
    JSON.stringify(jwk),
    '',
  ];
}
