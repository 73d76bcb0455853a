/**
 * Visits of a web shop, as analytics scripts send them: 30 fields with the usual skew (few pages, countries
 * and browsers make up most of it), absent values and a nested list. The same seed gives the same visits.
 */

const countries = ['US', 'DE', 'GB', 'FR', 'IN', 'BR', 'JP', 'CA', 'PL', 'NL', 'ES', 'IT', 'SE', 'AU', 'MX'];
const languages = ['en', 'de', 'en', 'fr', 'en', 'pt', 'ja', 'en', 'pl', 'nl', 'es', 'it', 'sv', 'en', 'es'];
const browsers = ['Chrome', 'Safari', 'Edge', 'Firefox', 'Samsung Internet', 'Opera'];
const systems = ['Windows', 'iOS', 'Android', 'macOS', 'Linux'];
const devices = ['desktop', 'mobile', 'tablet'];
const screens = [
  [1920, 1080],
  [390, 844],
  [1536, 864],
  [412, 915],
  [2560, 1440],
  [768, 1024],
] as const;
const events = ['view', 'view', 'view', 'view', 'click', 'click', 'scroll', 'cart', 'purchase', 'search'];
const campaigns = ['spring-sale', 'newsletter', 'brand', 'retargeting'];
const sections = ['products', 'blog', 'help', 'pricing', 'about', 'account'];
const variants = ['control', 'blue', 'green'];
const tags = ['new', 'returning', 'vip', 'trial', 'staff', 'bot'];

/** Where the visits begin; each comes a moment after the one before it. */
const firstVisit = Date.UTC(2026, 8, 1);

/** A generator of numbers in [0, 1) that is the same for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Makes visits one after the other. */
export function visitsFrom(seed: number): () => string {
  const random = randomFrom(seed);
  // Squared, so that the first ones are much more frequent.
  const pick = <T>(values: readonly [T, ...T[]] | readonly T[]): T => {
    const value = values[Math.floor(random() ** 2 * values.length)];
    if (value === undefined) throw new Error('there is nothing to pick from');
    return value;
  };
  let number = 0;
  return () => {
    number += 1;
    const at = new Date(firstVisit + number * 400 + Math.floor(random() * 400)).toISOString();
    const country = Math.floor(random() ** 2 * countries.length);
    const event = events[Math.floor(random() * events.length)] ?? 'view';
    const section = pick(sections);
    const page = Math.floor(random() ** 3 * 2000);
    const [width, height] = pick(screens);
    const user = Math.floor(random() ** 1.5 * 200_000);
    const bought = event === 'purchase';
    const campaign = random() < 0.3 ? `"campaign":"${pick(campaigns)}",` : '';
    const product = section === 'products' ? `"product_id":${1000 + page},` : '';
    const revenue = bought
      ? `"revenue":${(5 + random() * 495).toFixed(2)},"currency":"${country < 5 ? 'EUR' : 'USD'}","quantity":${1 + Math.floor(random() * 4)},`
      : '';
    const referrer = random() < 0.5 ? 'null' : `"https://search.example.com/?q=${section}"`;
    return (
      `{"event_id":"e${String(number).padStart(9, '0')}","event_type":"${event}","occurred_at":"${at}","visit_date":"${at.slice(0, 10)}",` +
      `"user_id":${user},"session_id":"s${user}-${Math.floor(number / 50_000)}","anonymous":${random() < 0.6},` +
      `"page_url":"https://shop.example.com/${section}/${page}","page_path":"/${section}/${page}","page_title":"${section} ${page}",` +
      `"referrer":${referrer},${campaign}"country":"${countries[country]}","region":"R${Math.floor(random() * 20)}","city":"City ${Math.floor(random() ** 2 * 500)}",` +
      `"language":"${languages[country]}","browser":"${pick(browsers)}","browser_version":${100 + Math.floor(random() * 40)},"os":"${pick(systems)}",` +
      `"device_type":"${pick(devices)}","screen_width":${width},"screen_height":${height},"duration_ms":${Math.floor(random() ** 4 * 600_000)},` +
      `"scroll_depth":${(random() * 100).toFixed(1)},${product}${revenue}"ab_variant":"${pick(variants)}","first_visit":${random() < 0.2},"tags":["${pick(tags)}","${pick(tags)}"]}`
    );
  };
}

/** Fifteen questions an analyst would ask. Each has one answer, in one order, whoever computes it. */
export const questions: readonly { readonly name: string; readonly sql: string }[] = [
  { name: 'count', sql: 'SELECT count(*) AS visits FROM visits' },
  {
    name: 'by type',
    sql: 'SELECT event_type, count(*) AS events FROM visits GROUP BY event_type ORDER BY event_type',
  },
  {
    name: 'revenue by country',
    sql: 'SELECT country, round(sum(revenue), 2) AS total, count(revenue) AS purchases FROM visits GROUP BY country ORDER BY country',
  },
  {
    name: 'people by day',
    sql: 'SELECT visit_date, count(DISTINCT user_id) AS people FROM visits GROUP BY visit_date ORDER BY visit_date',
  },
  {
    name: 'top pages',
    sql: "SELECT page_path, count(*) AS views FROM visits WHERE event_type = 'view' GROUP BY page_path ORDER BY views DESC, page_path LIMIT 20",
  },
  {
    name: 'by hour',
    sql: "SELECT date_trunc('hour', occurred_at) AS hour, count(*) AS events FROM visits WHERE occurred_at < TIMESTAMP '2026-09-03' GROUP BY hour ORDER BY hour",
  },
  {
    name: 'durations',
    sql: 'SELECT device_type, round(avg(duration_ms), 3) AS mean, max(duration_ms) AS longest FROM visits GROUP BY device_type ORDER BY device_type',
  },
  {
    name: 'quantiles',
    sql: 'SELECT browser, quantile_disc(duration_ms, 0.5) AS median, quantile_disc(duration_ms, 0.95) AS p95 FROM visits GROUP BY browser ORDER BY browser',
  },
  {
    name: 'conversion',
    sql: "SELECT ab_variant, count(*) FILTER (WHERE event_type = 'purchase') AS purchases, round(100.0 * count(*) FILTER (WHERE event_type = 'purchase') / count(*), 3) AS percent FROM visits GROUP BY ab_variant ORDER BY ab_variant",
  },
  {
    name: 'campaigns',
    sql: "SELECT coalesce(campaign, 'none') AS campaign, round(sum(revenue), 2) AS revenue FROM visits GROUP BY ALL ORDER BY campaign",
  },
  {
    name: 'text filter',
    sql: "SELECT count(*) AS hits FROM visits WHERE page_url LIKE '%/blog/1%' AND referrer IS NOT NULL",
  },
  {
    name: 'sessions',
    sql: 'SELECT pages, count(*) AS sessions FROM (SELECT session_id, least(count(*), 10) AS pages FROM visits GROUP BY session_id) GROUP BY pages ORDER BY pages',
  },
  {
    name: 'funnel',
    sql: "WITH carts AS (SELECT DISTINCT user_id FROM visits WHERE event_type = 'cart'), buyers AS (SELECT DISTINCT user_id FROM visits WHERE event_type = 'purchase') SELECT count(*) AS carts, count(buyers.user_id) AS buyers FROM carts LEFT JOIN buyers USING (user_id)",
  },
  {
    name: 'best customers',
    sql: 'SELECT user_id, round(sum(revenue), 2) AS spent FROM visits WHERE revenue IS NOT NULL GROUP BY user_id ORDER BY spent DESC, user_id LIMIT 10',
  },
  {
    name: 'tags',
    sql: 'SELECT tag, count(*) AS visits FROM (SELECT unnest(tags) AS tag FROM visits) GROUP BY tag ORDER BY tag',
  },
];
