import { hash, verify } from '@node-rs/argon2';
import { Gate } from '../platform/gate.ts';
import { type Problem, problem } from '../platform/problem.ts';
import { isCommonPassword } from './common-passwords.ts';

/**
 * argon2id with 19 MiB, two passes and one lane. The package's enum of algorithms exists only in its types,
 * and argon2id is its default; the encoded hash says which it was, and a test holds it to argon2id.
 */
const cost = { memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 } as const;

const shortest = 8;

/** The answer when too many passwords wait to be hashed or checked. */
export function busy(): Problem {
  return problem('OVERLOADED', undefined, { retryAfterSeconds: 2 });
}

export type Verification = 'right' | 'wrong' | 'busy';

/** Hashing and checking of passwords, bounded so that a flood of sign-ins cannot take the machine. */
export class Passwords {
  readonly #checking = new Gate({ running: 2, waiting: 128 });
  /** Apart, so that a flood of sign-ups does not keep people from signing in. */
  readonly #making = new Gate({ running: 1, waiting: 32 });
  /** A hash of nothing in particular: unknown accounts are checked against it, at the same cost as known ones. */
  #decoy: Promise<string> | undefined;

  /** The encoded hash, or undefined when too many are waiting. */
  async hash(password: string): Promise<string | undefined> {
    const done = await this.#making.run(() => hash(password.normalize('NFKC'), cost));
    return done?.value;
  }

  #decoyHash(): Promise<string> {
    this.#decoy ??= hash('decoy', cost);
    return this.#decoy;
  }

  /** Compares with the hash of an account; without one it does the same work and answers wrong. */
  async verify(encoded: string | undefined, password: string): Promise<Verification> {
    const against = encoded ?? (await this.#decoyHash());
    const done = await this.#checking.run(() => verify(against, password.normalize('NFKC')));
    if (done === undefined) return 'busy';
    return done.value && encoded !== undefined ? 'right' : 'wrong';
  }
}

/** Why a password is too weak, as a sentence for the person choosing it; undefined when it will do. */
export async function passwordWeakness(
  password: string,
  person: { readonly username: string; readonly email: string },
): Promise<string | undefined> {
  if ([...password].length < shortest) return `The password needs at least ${shortest} characters.`;
  const plain = password.toLowerCase();
  if ((await isCommonPassword(plain)) || (await isCommonPassword(plain.replace(/[^a-z0-9]+$/, '')))) {
    return 'This password is among the most commonly used. Choose another, such as a few unrelated words.';
  }
  if (new Set(plain).size < 3) return 'The password repeats too few characters. Choose another.';
  if (isSequence(plain)) return 'The password is a simple sequence. Choose another.';
  if (plain === person.username.toLowerCase() || plain === person.email.toLowerCase()) {
    return 'The password must differ from the username and the email.';
  }
  return undefined;
}

function isSequence(text: string): boolean {
  const steps = new Set<number>();
  for (let index = 1; index < text.length; index += 1) {
    steps.add(text.charCodeAt(index) - text.charCodeAt(index - 1));
  }
  const [step] = steps;
  return steps.size === 1 && step !== undefined && Math.abs(step) <= 1;
}
