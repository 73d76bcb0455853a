import { decodeProtectedHeader, jwtVerify, SignJWT } from 'jose';
import type { Clock } from '../platform/clock.ts';
import { type Random, randomId } from '../platform/random.ts';
import { type SigningKeys, signingAlgorithm } from './signing-keys.ts';

const accessType = 'at+jwt';
const accessAudience = 'millrace';
const identityAudience = 'millrace-clients';

export interface AccessClaims {
  readonly accountId: string;
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

export interface TokenSubject {
  readonly accountId: string;
  readonly sessionId: string;
  readonly username: string;
  readonly email: string;
}

/** Makes and reads the signed tokens of a session. */
export class Tokens {
  readonly #keys: SigningKeys;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #issuer: string;
  readonly #lifetimeSeconds: number;
  constructor(options: {
    keys: SigningKeys;
    clock: Clock;
    random: Random;
    issuer: string;
    lifetimeSeconds: number;
  }) {
    this.#keys = options.keys;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#issuer = options.issuer;
    this.#lifetimeSeconds = options.lifetimeSeconds;
  }

  async issue(subject: TokenSubject): Promise<{ accessToken: string; idToken: string }> {
    const key = await this.#keys.current();
    const issuedAt = Math.floor(this.#clock.now() / 1000);
    const sign = (type: string, audience: string, claims: Record<string, string>) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: signingAlgorithm, kid: key.id, typ: type })
        .setIssuer(this.#issuer)
        .setAudience(audience)
        .setSubject(subject.accountId)
        .setJti(randomId(this.#random))
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + this.#lifetimeSeconds)
        .sign(key.privateKey);
    const [accessToken, idToken] = await Promise.all([
      sign(accessType, accessAudience, { sid: subject.sessionId, username: subject.username }),
      sign('JWT', identityAudience, { preferred_username: subject.username, email: subject.email }),
    ]);
    return { accessToken, idToken };
  }

  /** The claims of an access token, or undefined for anything that is not a good one. */
  async verify(token: string): Promise<AccessClaims | undefined> {
    const keyId = keyIdOf(token);
    const key = keyId === undefined ? undefined : await this.#keys.find(keyId);
    if (key === undefined) return undefined;
    try {
      const { payload } = await jwtVerify(token, key.publicKey, {
        algorithms: [signingAlgorithm],
        typ: accessType,
        issuer: this.#issuer,
        audience: accessAudience,
        requiredClaims: ['sub', 'exp', 'iat', 'sid'],
        currentDate: new Date(this.#clock.now()),
      });
      if (payload.sub === undefined || payload.exp === undefined || typeof payload.sid !== 'string') {
        return undefined;
      }
      return { accountId: payload.sub, sessionId: payload.sid, expiresAt: payload.exp * 1000 };
    } catch {
      // Why a token is refused is of no use to its holder and of some use to a forger.
      return undefined;
    }
  }
}

/** The key id of a token whose header is exactly as we write them: no keys or addresses of keys inside. */
function keyIdOf(token: string): string | undefined {
  try {
    const header = decodeProtectedHeader(token);
    const expected = header.alg === signingAlgorithm && header.typ === accessType;
    if (!expected || Object.keys(header).length !== 3) return undefined;
    return header.kid;
  } catch {
    return undefined;
  }
}
