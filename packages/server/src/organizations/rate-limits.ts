import type { RateLimitLevelName } from '@millrace/contract';
import type { LimitDecision, Limiter, LimitPolicy } from '../limits/limiter.ts';
import { type Problem, problem } from '../platform/problem.ts';
import type { Organization } from './organization-store.ts';

/** The burst: ten seconds' worth of the sustained rate. */
const windowSeconds = 10;

export interface RateLimitAnswer {
  readonly policyHeader: string;
  readonly header: string;
  readonly problem: Problem | undefined;
}

/** How many requests an organization may make. The limit is the organization's, whoever of it calls. */
export class RateLimits {
  readonly #limiter: Limiter;
  readonly #policies: Readonly<Record<RateLimitLevelName, LimitPolicy & { header: string }>>;

  constructor(limiter: Limiter, defaultPerSecond: number) {
    this.#limiter = limiter;
    this.#policies = {
      DEFAULT: policyOf(defaultPerSecond),
      ONE: policyOf(1),
      TEN: policyOf(10),
      HUNDRED: policyOf(100),
    };
  }

  /** Takes one request from what the organization has left. */
  take(organization: Organization): RateLimitAnswer | Promise<RateLimitAnswer> {
    const policy = this.#policies[organization.rateLimitLevel];
    const decision = this.#limiter.take(organization.id, policy);
    if (decision instanceof Promise) return decision.then((decided) => answerOf(policy.header, decided));
    return answerOf(policy.header, decision);
  }
}

function policyOf(perSecond: number): LimitPolicy & { header: string } {
  const burst = Math.max(1, perSecond * windowSeconds);
  return { perSecond, burst, header: `"organization";q=${burst};w=${windowSeconds}` };
}

function answerOf(policyHeader: string, decision: LimitDecision): RateLimitAnswer {
  const header = `"organization";r=${decision.remaining};t=${decision.resetSeconds}`;
  if (decision.allowed) return { policyHeader, header, problem: undefined };
  const { retryAfterSeconds } = decision;
  const detail = `The organization has used up its rate limit. Try again in ${retryAfterSeconds} seconds.`;
  return { policyHeader, header, problem: problem('RATE_LIMITED', detail, { retryAfterSeconds }) };
}
