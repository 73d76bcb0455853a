import type { Bubblewrap } from '../../platform/bubblewrap.ts';
import type { Refusal, Statement } from '../engine.ts';
import { placed } from '../place.ts';
import { Child, ChildEndedError, compileAnswers } from './child.ts';
import { parserLaunch } from './launch.ts';
import { InspectAnswer, type InspectRequest } from './protocol.ts';

type ParserChild = Child<Omit<InspectRequest, 'id'>, typeof InspectAnswer>;

const answers = compileAnswers(InspectAnswer);
const mostMilliseconds = 5000;
const idleMilliseconds = 5 * 60_000;
const tooComplex: Refusal = { kind: 'refused', reason: 'The statement is too complex.' };

/** Asks the parser, a child that all organizations share and that has nobody's files. */
export class Parser {
  readonly #bubblewrap: Bubblewrap | undefined;
  readonly #directory: string;
  #child: Promise<ParserChild> | undefined;
  #asking = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(bubblewrap: Bubblewrap | undefined, directory: string) {
    this.#bubblewrap = bubblewrap;
    this.#directory = directory;
  }

  async inspect(sql: string): Promise<Statement | Refusal> {
    this.#asking += 1;
    clearTimeout(this.#idle);
    try {
      return await this.#inspect(sql);
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#idle = setTimeout(() => this.close(), idleMilliseconds).unref();
    }
  }

  close(): void {
    clearTimeout(this.#idle);
    const child = this.#child;
    this.#child = undefined;
    child?.then(
      (started) => started.kill(),
      () => {},
    );
  }

  async #inspect(sql: string): Promise<Statement | Refusal> {
    // Twice, because what ended the child may have been the statement of somebody else.
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const child = await this.#started();
      let timer: NodeJS.Timeout | undefined;
      let late = false;
      try {
        timer = setTimeout(() => {
          late = true;
          child.kill();
        }, mostMilliseconds);
        const answer = await child.ask({ kind: 'inspect', sql });
        if (answer.kind === 'statement') return answer;
        return { kind: 'refused', reason: placed(sql, answer.reason, answer.position) };
      } catch (error) {
        if (!(error instanceof ChildEndedError)) throw error;
        if (late) return tooComplex;
      } finally {
        clearTimeout(timer);
      }
    }
    return tooComplex;
  }

  #started(): Promise<ParserChild> {
    if (this.#child !== undefined) return this.#child;
    const starting: Promise<ParserChild> = Child.start(
      parserLaunch(this.#bubblewrap, this.#directory),
      answers,
    );
    this.#child = starting;
    const forget = () => {
      if (this.#child === starting) this.#child = undefined;
    };
    starting.then((child) => child.ended.then(forget), forget);
    return starting;
  }
}
