import { EventLogFullError } from '../events.ts';
import type { Answer, FromReader, Question } from './protocol.ts';

type AnswerTo<Kind extends Question['kind']> = Extract<Answer, { kind: Kind }>;

interface Waiting {
  hear(answer: Answer): void;
  reject(error: Error): void;
}

/** The main thread's end of the thread that reads, which answers questions in the order they came. */
export class Questions {
  readonly #limit: number;
  readonly #send: (question: Question) => void;
  readonly #failed: (message: string) => Error;
  readonly #waiting: Waiting[] = [];
  #whenEmpty: (() => void)[] = [];

  constructor(options: { limit: number; send(question: Question): void; failed(message: string): Error }) {
    this.#limit = options.limit;
    this.#send = options.send;
    this.#failed = options.failed;
  }

  ask<Asked extends Question>(question: Asked): Promise<AnswerTo<Asked['kind']>> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= this.#limit) {
        throw new EventLogFullError('Too many are waiting to read from the event log');
      }
      const hear = (answer: Answer) => {
        if (answers(question, answer)) resolve(answer);
        else reject(new Error('The event log answered something else than was asked'));
      };
      this.#waiting.push({ hear, reject });
      this.#send(question);
    });
  }

  settle(message: FromReader): void {
    if (message.kind === 'opened' || message.kind === 'refused') return;
    const waiting = this.#waiting.shift();
    if (message.kind === 'failed') waiting?.reject(this.#failed(message.failure.message));
    else waiting?.hear(message);
    this.#tellWhenEmpty();
  }

  refuseAll(error: Error): void {
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
    this.#tellWhenEmpty();
  }

  /** Resolves when nobody waits for an answer. */
  async drained(): Promise<void> {
    while (this.#waiting.length > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  #tellWhenEmpty(): void {
    if (this.#waiting.length === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}

function answers<Asked extends Question>(question: Asked, answer: Answer): answer is AnswerTo<Asked['kind']> {
  return answer.kind === question.kind;
}
