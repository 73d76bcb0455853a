import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { call } from '../harness/client.ts';
import { type RunningService, startService } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';
import { Ledger } from './ledger.ts';
import { type Account, type Answered, publish } from './publisher.ts';
import { damages, readLog } from './read-log.ts';
import { newPublishing } from './site.ts';

const run = promisify(execFile);
const diskSize = '16m';
const ballastBytes = 5 * 1024 * 1024;
const resumeMilliseconds = 10_000;
/** More than the disk has room for. */
const mostRequests = 2_000;
const refusalsWanted = 40;

/** A small disk of its own; undefined where it cannot be made. */
async function smallDisk(): Promise<{ directory: string; remove(): Promise<void> } | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-full-'));
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${diskSize}`, 'tmpfs', directory]);
  } catch {
    await rmdir(directory);
    return undefined;
  }
  return {
    directory,
    remove: async () => {
      await run('umount', ['-l', directory]);
      await rmdir(directory);
    },
  };
}

/** Publishes messages of a size to keys of its own, one after the other, and keeps the books. */
class Filler {
  readonly #ledger: Ledger;
  readonly #name: string;
  #sequence = 0;

  constructor(name: string, ledger: Ledger) {
    this.#name = name;
    this.#ledger = ledger;
  }

  async send(account: Account, filling: number, count = 1): Promise<Answered> {
    const messages = Array.from({ length: count }, () => {
      this.#sequence += 1;
      return { id: `${this.#name}-${this.#sequence}`, key: this.#name, sequence: this.#sequence, filling };
    });
    const form = count === 1 ? 'message' : 'lines';
    const request = { form, topicName: 'orders', messages } as const;
    const startedAt = Date.now();
    const answered = await publish(account, request);
    this.#ledger.note(request, startedAt, answered);
    return answered;
  }
}

describe('when the disk is full', { timeout: 120_000 }, () => {
  it('refuses what it cannot keep, reads on, and resumes by itself when there is room', async (context) => {
    const disk = await smallDisk();
    if (disk === undefined) return context.skip('a small disk cannot be mounted here: that needs root');
    const ballast = join(disk.directory, 'ballast');
    let service: RunningService | undefined;
    try {
      await writeFile(ballast, Buffer.alloc(ballastBytes, 1));
      const dataDirectory = join(disk.directory, 'data');
      service = await startService({ dataDirectory });
      const publishing = await newPublishing(service);
      const account = { ...publishing, url: service.url };
      const ledger = new Ledger();
      const fillers = ['a', 'b', 'c'].map((name) => new Filler(name, ledger));

      const refused = await fill(account, fillers);
      assert.ok(ledger.counts().acknowledged > 0, 'there was room at first');
      for (const answer of refused) {
        assert.equal(answer.status, 503, answer.text);
        assert.ok(['STORAGE_FULL', 'OVERLOADED'].includes(answer.body.code), answer.text);
        assert.ok(Number(answer.headers.get('retry-after')) >= 1, 'it says when to come again');
      }
      await assertReads(account);
      const kept = await fillState(account);
      await assertReads(account);
      const acknowledgedWhenFull = ledger.counts().acknowledged;

      await rm(ballast);
      const began = performance.now();
      for (const filler of fillers) {
        await eventually('writing resumes', resumeMilliseconds, async () => {
          const answered = await filler.send(account, 20_000);
          return answered.kind === 'acknowledged' ? answered : undefined;
        });
      }
      const took = Math.round(performance.now() - began);
      for (let left = 20; left > 0; left -= 1) {
        for (const filler of fillers) {
          assert.equal((await filler.send(account, 300, 5)).kind, 'acknowledged');
        }
      }
      const upserted = await upsert(account, kept + 1);
      assert.equal(upserted.status, 200, `state is written again: ${upserted.text}`);
      await assertReads(account);
      assert.equal(service.process.exitCode, null, 'the process is the same as before');
      assert.equal(await service.stop(), 0);

      const { acknowledged, refused: refusedMessages, unknown } = ledger.counts();
      context.diagnostic(
        `${acknowledgedWhenFull} acknowledged when full, ${acknowledged} in the end, ` +
          `${refusedMessages} refused, ${unknown} unknown, resumed in ${took} ms`,
      );
      assert.equal(unknown, 0, 'every request was answered');
      assert.deepEqual(ledger.violations(await readLog(dataDirectory)), []);
      assert.deepEqual(await damages(dataDirectory), []);
    } finally {
      await service?.kill();
      await disk.remove();
    }
  });
});

/** Publishes until the disk is full and for a while longer, and answers the refusals. */
async function fill(account: Account, fillers: readonly Filler[]) {
  const refusals: Extract<Answered, { kind: 'refused' }>['answer'][] = [];
  for (let sent = 0; sent < mostRequests && refusals.length < refusalsWanted; sent += 1) {
    // Ever smaller ones fit into what is left, down to where nothing does.
    const filling = refusals.length === 0 ? 60_000 : Math.floor(60_000 / 2 ** refusals.length);
    const count = sent % 3 === 0 ? 4 : 1;
    for (const answered of await Promise.all(fillers.map((filler) => filler.send(account, filling, count)))) {
      assert.notEqual(answered.kind, 'unknown', 'every request is answered');
      if (answered.kind === 'refused') refusals.push(answered.answer);
    }
  }
  assert.ok(refusals.length >= refusalsWanted, `the disk is full after ${mostRequests} requests`);
  return refusals;
}

const keyParts = ['full', 'disk'];
const mostChanges = 200;

function upsert({ url, token, organizationName }: Account, number: number) {
  const body = { keyParts, attributes: { number, filling: 'x'.repeat(100_000) } };
  return call(url, 'upsertState', { token, path: { organizationName }, body });
}

/** Changes an entry of the other database on the disk until that is refused; the last change stands. */
async function fillState(account: Account): Promise<number> {
  const { url, token, organizationName } = account;
  let kept = 0;
  for (let number = 1; number <= mostChanges; number += 1) {
    const answer = await upsert(account, number);
    if (answer.status === 200) {
      kept = number;
      continue;
    }
    assert.equal(answer.status, 503, answer.text);
    assert.equal(answer.body.code, 'STORAGE_FULL');
    assert.ok(Number(answer.headers.get('retry-after')) >= 1, 'it says when to come again');
    break;
  }
  const found = await call(url, 'getState', { token, path: { organizationName }, body: { keyParts } });
  assert.equal(found.status, kept === 0 ? 404 : 200, found.text);
  if (kept > 0) assert.equal(found.body.attributes.number, kept);
  return kept;
}

async function assertReads({ url, token, organizationName }: Account): Promise<void> {
  for (const operation of ['getTopics', 'rateLimitGet'] as const) {
    const answer = await call(url, operation, { token, path: { organizationName } });
    assert.equal(answer.status, 200, `${operation}: ${answer.text}`);
  }
}
