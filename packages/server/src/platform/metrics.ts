import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** The figures that Prometheus reads at /metrics. */
export interface Metrics {
  /** One answered request: which operation, which status, how long it took. */
  observeRequest(operation: string, status: number, seconds: number): void;
  /** One invocation of a task: what for, how it ended, how long it took. */
  observeInvocation(kind: string, outcome: string, seconds: number): void;
  /** Shows the tasks of this node, asked for whenever the figures are read. */
  showTasks(read: () => TaskFigures): void;
  /** Shows how far consumers are, asked for whenever the figures are read. */
  showConsumers(read: () => Promise<readonly ConsumerKindFigures[]>): void;
  render(): Promise<{ contentType: string; text: string }>;
}

/** What is shown of the tasks of this node. */
export interface TaskFigures {
  readonly tasks: number;
  readonly processes: number;
  readonly busy: number;
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
  const invocations = new Histogram({
    name: 'millrace_task_invocation_duration_seconds',
    help: 'Time of an invocation of a task, by what for and how it ended: success, error, timeout, crash or unavailable.',
    labelNames: ['kind', 'outcome'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900],
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
    observeInvocation(kind, outcome, seconds) {
      invocations.labels(kind, outcome).observe(seconds);
    },
    showTasks(read) {
      const gauge = new Gauge({
        name: 'millrace_tasks',
        help: 'Tasks with an active version on this node, their processes, and how many of these are at work.',
        labelNames: ['figure'],
        registers: [registry],
        collect() {
          for (const [figure, value] of Object.entries(read())) gauge.set({ figure }, value);
        },
      });
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
