/** Makes visits of an imaginary shop, the same every time: a day of them, more by daylight than at night. */
export function* visits(count: number, until: number): Generator<Visit> {
  const random = randomFrom(7);
  const pick = <T>(values: readonly T[]): T | undefined => values[Math.floor(random() ** 2 * values.length)];
  const start = until - dayMilliseconds;
  for (let index = 0; index < count; index += 1) {
    const hour = Math.floor(12 + 6 * (random() + random() - 1) * 1.9);
    const at = start + ((hour + random()) / 24) * dayMilliseconds;
    const bought = random() < 0.04;
    yield {
      id: `v${index}`,
      user: `user-${Math.floor(random() ** 1.5 * 5_000)}`,
      page: pick(pages) ?? '/',
      country: pick(countries) ?? 'US',
      device: pick(['mobile', 'desktop', 'tablet']) ?? 'mobile',
      seen_at: new Date(at).toISOString(),
      milliseconds: Math.floor(random() ** 3 * 60_000),
      ...(bought ? { revenue: Math.round(500 + random() * 20_000) / 100 } : {}),
    };
  }
}

export interface Visit {
  readonly id: string;
  readonly user: string;
  readonly page: string;
  readonly country: string;
  readonly device: string;
  readonly seen_at: string;
  readonly milliseconds: number;
  readonly revenue?: number;
}

const dayMilliseconds = 86_400_000;
const pages = [
  '/',
  '/shoes',
  '/shoes/red',
  '/hats',
  '/checkout',
  '/about',
  '/sale',
  '/bags',
  '/returns',
  '/jobs',
];
const countries = ['US', 'DE', 'GB', 'FR', 'NL', 'JP', 'BR', 'IN'];

function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
