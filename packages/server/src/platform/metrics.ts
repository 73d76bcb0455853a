import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** The figures that Prometheus reads at /metrics. */
export interface Metrics {
  /** One answered request: which operation, which status, how long it took. */
  observeRequest(operation: string, status: number, seconds: number): void;
  /** Shows how far consumers are, asked for whenever the figures are read. */
  showConsumers(read: () => Promise<readonly ConsumerKindFigures[]>): void;
  render(): Promise<{ contentType: string; text: string }>;
}

/** What is shown of the consumers of one kind. */
export interface ConsumerKindFigures {
  readonly kind: string;
  readonly lag: number;
  readonly oldestAgeMilliseconds: number;
  readonly parkedKeys: number;
  readonly inFlight: number;
  readonly handled: number;
  readonly failed: number;
  readonly deadLettered: number;
}

export function createMetrics(build: { version: string }): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'millrace_build_info',
    help: 'The version that is running; always 1.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version: build.version, node: process.version }, 1);
  const requests = new Histogram({
    name: 'millrace_http_request_duration_seconds',
    help: 'Time to answer a request, by operation and status.',
    labelNames: ['operation', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers: [registry],
  });
  // Finding the series of a pair of labels costs more than adding to it, and there are few pairs.
  const series = new Map<string, ReturnType<typeof requests.labels>>();

  return {
    observeRequest(operation, status, seconds) {
      const name = `${operation} ${status}`;
      let one = series.get(name);
      if (one === undefined) {
        one = requests.labels(operation, String(status));
        series.set(name, one);
      }
      one.observe(seconds);
    },
    showConsumers(read) {
      const gauge = new Gauge({
        name: 'millrace_consumers',
        help: 'Consumers by kind: records waiting, age of the oldest in seconds, keys held back, records in hand, and counts since the start.',
        labelNames: ['kind', 'figure'],
        registers: [registry],
        async collect() {
          for (const figures of await read()) {
            const show = (figure: string, value: number) => gauge.set({ kind: figures.kind, figure }, value);
            show('lag', figures.lag);
            show('oldest_age_seconds', figures.oldestAgeMilliseconds / 1000);
            show('parked_keys', figures.parkedKeys);
            show('in_flight', figures.inFlight);
            show('handled', figures.handled);
            show('failed', figures.failed);
            show('dead_lettered', figures.deadLettered);
          }
        },
      });
    },
    async render() {
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}
