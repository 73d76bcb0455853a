import assert from 'node:assert/strict';
import { type Answer, call } from './client.ts';
import { newOrganization, newPerson, type Person } from './people.ts';
import type { RunningService } from './service.ts';
import { eventually } from './waiting.ts';

const runMilliseconds = 60_000;

export interface QueryStatus {
  readonly queryExecutionId: string;
  readonly state: string;
  readonly errorMessage?: string;
  readonly bytesScanned?: number;
  readonly executionTimeMs?: number;
}

export type Row = (string | null)[];

/** An organization with somebody who publishes to it and queries it. */
export class Analyst {
  readonly service: RunningService;
  readonly person: Person;
  readonly organizationName: string;

  constructor(service: RunningService, person: Person, organizationName: string) {
    this.service = service;
    this.person = person;
    this.organizationName = organizationName;
  }

  static async hire(service: RunningService): Promise<Analyst> {
    const person = await newPerson(service);
    return new Analyst(service, person, await newOrganization(service, person));
  }

  get #who() {
    return { token: this.person.accessToken, path: { organizationName: this.organizationName } };
  }

  #query(queryExecutionId: string) {
    return { ...this.#who, path: { ...this.#who.path, queryExecutionId } };
  }

  /** Defines a topic whose messages go to the lake. */
  async define(topicName: string): Promise<void> {
    const path = { ...this.#who.path, topicName };
    const body = { batch: {} };
    const defined = await call(this.service.url, 'updateTopic', { ...this.#who, path, body });
    assert.ok(defined.status < 300, defined.text);
  }

  async publish(topicName: string, messages: readonly object[]): Promise<void> {
    const { url } = this.service;
    const topic = encodeURIComponent(topicName);
    const response = await fetch(`${url}/v1/organization/${this.organizationName}/topic/${topic}/messages`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.person.accessToken}`,
        'content-type': 'application/x-ndjson',
      },
      body: messages.map((message) => JSON.stringify(message)).join('\n'),
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.equal(JSON.parse(text).accepted, messages.length, text);
  }

  submit(sqlQuery: string) {
    return call(this.service.url, 'submitQuery', { ...this.#who, body: { sqlQuery } });
  }

  async start(sqlQuery: string): Promise<string> {
    const submitted = await this.submit(sqlQuery);
    assert.equal(submitted.status, 200, submitted.text);
    return submitted.body.queryExecutionId;
  }

  status(id: string) {
    return call(this.service.url, 'getQueryStatus', this.#query(id));
  }

  cancel(id: string) {
    return call(this.service.url, 'cancelQuery', this.#query(id));
  }

  results(id: string, query: { nextToken?: string; maxResults?: number } = {}) {
    return call(this.service.url, 'getQueryResults', { ...this.#query(id), query });
  }

  history(maxResults?: number) {
    const query = maxResults === undefined ? {} : { maxResults };
    return call(this.service.url, 'getQueryHistory', { ...this.#who, query });
  }

  schema() {
    return call(this.service.url, 'getDatabaseSchema', this.#who);
  }

  async export(id: string, format: string): Promise<Response> {
    const { url } = this.service;
    return fetch(`${url}/v1/organization/${this.organizationName}/query/${id}/export?format=${format}`, {
      headers: { authorization: `Bearer ${this.person.accessToken}` },
    });
  }

  /** Waits until a query is in one of the states. */
  until(id: string, states: readonly string[], milliseconds = runMilliseconds): Promise<QueryStatus> {
    return eventually(
      `the query is ${states.join(' or ')}`,
      milliseconds,
      async () => {
        const { body } = await this.status(id);
        return states.includes(body.state) ? body : undefined;
      },
      5,
    );
  }

  end(id: string, milliseconds = runMilliseconds): Promise<QueryStatus> {
    return this.until(id, ['SUCCEEDED', 'FAILED', 'CANCELLED'], milliseconds);
  }

  /** Runs a statement to its end. */
  async run(sqlQuery: string, milliseconds = runMilliseconds): Promise<QueryStatus> {
    return this.end(await this.start(sqlQuery), milliseconds);
  }

  /** The rows of a statement that succeeds. */
  async rows(sqlQuery: string): Promise<Row[]> {
    const { rows } = await this.table(sqlQuery);
    return rows;
  }

  async table(sqlQuery: string): Promise<{ columns: { name: string; type: string }[]; rows: Row[] }> {
    const ended = await this.run(sqlQuery);
    assert.equal(ended.state, 'SUCCEEDED', `${sqlQuery.slice(0, 200)}: ${ended.errorMessage}`);
    const answer = await this.results(ended.queryExecutionId, { maxResults: 1000 });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  /** What is told of a statement that is refused or fails. */
  async failure(sqlQuery: string): Promise<string> {
    const submitted: Answer = await this.submit(sqlQuery);
    if (submitted.status !== 200) {
      assert.equal(submitted.status, 400, submitted.text);
      assert.equal(submitted.body.code, 'SQL_INVALID', submitted.text);
      return submitted.body.detail;
    }
    const { queryExecutionId } = JSON.parse(submitted.text);
    const ended = await this.end(queryExecutionId);
    assert.equal(ended.state, 'FAILED', `${sqlQuery.slice(0, 200)} ${ended.state}`);
    assert.ok(ended.errorMessage);
    return ended.errorMessage;
  }
}
