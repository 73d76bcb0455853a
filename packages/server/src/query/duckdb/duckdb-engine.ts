import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Bubblewrap, probeBubblewrap } from '../../platform/bubblewrap.ts';
import type { Log } from '../../platform/log.ts';
import { type Random, randomId } from '../../platform/random.ts';
import type {
  EngineLimits,
  Failure,
  IngestedRange,
  QueryEngine,
  QueryJob,
  Refusal,
  Statement,
  Success,
} from '../engine.ts';
import { ChildEndedError } from './child.ts';
import { insideScratch } from './launch.ts';
import { endingMessage, failureOf, isFatal } from './messages.ts';
import { Parser } from './parser.ts';
import { parquetFile, rowsFile } from './protocol.ts';
import { ingestedRanges } from './ranges.ts';
import { type Runner, Runners } from './runners.ts';
import { Watchdog } from './watchdog.ts';

export interface DuckdbEngineOptions {
  /** A folder for what lasts as long as a query; emptied at the start. */
  readonly scratch: string;
  readonly limits: EngineLimits;
  readonly random: Random;
  readonly log: Log;
  /** Whether children run inside bubblewrap; looked for unless given. */
  readonly bubblewrap?: Bubblewrap | 'none';
}

const idleMilliseconds = 60_000;
const mostIdle = 4;
/** Up to so many characters a statement is parsed in no time, whatever it is. */
const shortStatement = 8192;
/** Where the state lies in the scratch folder of a runner. */
const stateFile = 'state/state.ndjson';

/** DuckDB in child processes: one to parse, and one for each query at work. */
export async function openDuckdbEngine(options: DuckdbEngineOptions): Promise<QueryEngine> {
  const scratch = resolve(options.scratch);
  await rm(scratch, { recursive: true, force: true });
  await mkdir(join(scratch, 'empty'), { recursive: true, mode: 0o700 });
  return new DuckdbEngine({ ...options, scratch });
}

interface Children {
  readonly bubblewrap: Bubblewrap | undefined;
  readonly parser: Parser;
  /** For long statements: some take seconds to parse, or end the process, and nobody else should notice. */
  readonly patientParser: Parser;
  readonly runners: Runners;
}

class DuckdbEngine implements QueryEngine {
  readonly #options: DuckdbEngineOptions;
  /** Made at the first use: looking for bubblewrap should not hold up a start. */
  #children: Promise<Children> | undefined;

  constructor(options: DuckdbEngineOptions) {
    this.#options = options;
  }

  async inspect(sql: string): Promise<Statement | Refusal> {
    const { parser, patientParser } = await this.#started();
    return (sql.length > shortStatement ? patientParser : parser).inspect(sql);
  }

  async run(job: QueryJob, signal: AbortSignal): Promise<Success | Failure> {
    const { limits, log } = this.#options;
    if (signal.aborted) return { kind: 'failed', message: endingMessage('cancelled', limits) };
    const children = await this.#started();
    const runner = await this.#take(children.runners, job, signal);
    if (runner === undefined) {
      return { kind: 'failed', message: endingMessage('cancelled', limits) };
    }
    const watchdog = new Watchdog(runner, limits, signal);
    let isWell = false;
    try {
      const outcome = await this.#runIn(children, runner, job);
      // An interruption may arrive late and hit the next query, so such a runner has no next one.
      isWell = outcome.isWell && watchdog.ending === undefined;
      if (watchdog.ending !== undefined) {
        return { kind: 'failed', message: endingMessage(watchdog.ending, limits) };
      }
      if (isWell && outcome.result.kind === 'failed') await children.runners.giveBack(runner);
      return outcome.result;
    } catch (error) {
      if (!(error instanceof ChildEndedError)) throw error;
      if (watchdog.ending !== undefined) {
        return { kind: 'failed', message: endingMessage(watchdog.ending, limits) };
      }
      log.warn({ event: 'query.child-ended', complaint: error.message }, 'the process of a query ended');
      return { kind: 'failed', message: 'The process that ran the query ended unexpectedly.' };
    } finally {
      watchdog.stop();
      // Nobody waits for the remains to be cleared away.
      if (!isWell) children.runners.discard(runner).catch((error: unknown) => this.#complain(error));
    }
  }

  /** A runner for the organization; undefined when nobody wants it any more before it is there. */
  async #take(runners: Runners, job: QueryJob, signal: AbortSignal): Promise<Runner | undefined> {
    const taking = this.#takeAgain(runners, job);
    const { promise: aborted, resolve: abort } = Promise.withResolvers<undefined>();
    const listener = () => abort(undefined);
    signal.addEventListener('abort', listener, { once: true });
    try {
      const runner = await Promise.race([taking, aborted]);
      if (runner === undefined) {
        taking.then((late) => runners.giveBack(late)).catch((error: unknown) => this.#complain(error));
      }
      return runner;
    } finally {
      signal.removeEventListener('abort', listener);
    }
  }

  /** A process that dies while it starts is started once more: what killed it need not be there again. */
  async #takeAgain(runners: Runners, { organization, directory }: QueryJob): Promise<Runner> {
    const folder = resolve(directory);
    try {
      return await runners.take(organization, folder);
    } catch (error) {
      if (!(error instanceof ChildEndedError)) throw error;
      this.#options.log.warn({ event: 'query.start-failed', error }, 'the process of a query did not start');
      return runners.take(organization, folder);
    }
  }

  #complain(error: unknown): void {
    this.#options.log.warn(
      { event: 'query.runner-lost', error },
      'a process of queries could not be dealt with',
    );
  }

  async close(): Promise<void> {
    const children = await this.#children;
    children?.parser.close();
    children?.patientParser.close();
    await children?.runners.close();
  }

  #started(): Promise<Children> {
    this.#children ??= this.#start();
    return this.#children;
  }

  async #start(): Promise<Children> {
    const { scratch, limits, log } = this.#options;
    const found = this.#options.bubblewrap ?? (await probeBubblewrap());
    const bubblewrap = found === 'none' ? undefined : found;
    if (bubblewrap === undefined) {
      log.info({ event: 'query.unwrapped' }, 'without bubblewrap queries run in plain processes');
    }
    return {
      bubblewrap,
      parser: new Parser(bubblewrap, join(scratch, 'empty')),
      patientParser: new Parser(bubblewrap, join(scratch, 'empty')),
      runners: new Runners({ bubblewrap, scratch, limits, idleMilliseconds, mostIdle }),
    };
  }

  async #runIn(
    { bubblewrap, runners }: Children,
    runner: Runner,
    job: QueryJob,
  ): Promise<{ result: Success | Failure; isWell: boolean }> {
    const { random, limits } = this.#options;
    const ranges = await this.#rangesOf(runner, job);
    const views = await Promise.all(
      job.tables.map(async (table) => ({
        name: table.name,
        sql: await table.scan(ranges.get(table.name)),
      })),
    );
    const statePath = join(runner.scratch, stateFile);
    if (job.writeState !== undefined) {
      await job.writeState(statePath);
      views.push({
        name: '_state',
        sql: stateSql(join(bubblewrap === undefined ? runner.scratch : insideScratch, stateFile)),
      });
    }
    const folder = `result-${randomId(random)}`;
    const answer = await runner.child.ask({ kind: 'run', sql: job.sql, views, folder });
    if (job.writeState !== undefined) await rm(statePath, { force: true });
    const path = join(runner.scratch, folder);
    if (answer.kind !== 'ran') {
      await rm(path, { recursive: true, force: true });
      if (answer.kind === 'planned') throw new ChildEndedError('it answered another question');
      return { result: failureOf(answer, job.sql, limits), isWell: !isFatal(answer) };
    }
    const discard = async () => {
      // The next query need not wait until the files are gone.
      rm(path, { recursive: true, force: true }).catch((error: unknown) => this.#complain(error));
      await runners.giveBack(runner);
    };
    const result: Success = {
      kind: 'succeeded',
      columns: answer.columns,
      rows: answer.rows,
      bytesScanned: answer.bytesScanned,
      executionMilliseconds: answer.milliseconds,
      rowsPath: join(path, rowsFile),
      parquetPath: join(path, parquetFile),
      discard,
    };
    return { result, isWell: true };
  }

  async #rangesOf(runner: Runner, job: QueryJob): Promise<Map<string, IngestedRange>> {
    if (!job.namesIngestedAt || job.tables.length === 0) return new Map();
    const tables = job.tables.map(({ name, columns }) => ({ name, columns }));
    const answer = await runner.child.ask({ kind: 'plan', sql: job.sql, tables });
    return answer.kind === 'planned' ? ingestedRanges(answer.plan) : new Map();
  }
}

/** `_state`: lines of JSON with times in milliseconds. */
function stateSql(path: string): string {
  const columns =
    "{key_parts: 'VARCHAR[]', merged_key: 'VARCHAR', attributes: 'JSON', version: 'BIGINT', expires_at: 'BIGINT', updated_at: 'BIGINT'}";
  const quoted = `'${path.replaceAll("'", "''")}'`;
  return (
    'select key_parts, merged_key, attributes, version, make_timestamp(expires_at * 1000) as expires_at, ' +
    `make_timestamp(updated_at * 1000) as updated_at from read_json(${quoted}, ` +
    `format = 'newline_delimited', columns = ${columns}, maximum_object_size = 8388608)`
  );
}
