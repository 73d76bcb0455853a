import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { begin, type Desk, example, listed } from './reference-desk.ts';
import { run } from './terminal.ts';

/** A message that the task of the reference cannot handle: a part of a key is not empty. */
const poison = ['topic', 'publish', 'clicks', '--message', '{"page":""}', '--message-key'];

/** The examples about projects and tasks, in the order in which somebody would try them. */
export function taskExamples(desk: () => Desk): void {
  it('begins a project and deploys it', async () => {
    const ada = desk();
    await example(ada, 'millrace task init enrich --input clicks --output enriched', {
      stderr: /Wrote tasks\/enrich\.ts and millrace\.json/,
    });
    const file = join(ada.directory, 'millrace.json');
    const project = JSON.parse(await readFile(file, 'utf8'));
    // So that a message is given up on at once.
    project.tasks.enrich.maxAttempts = 1;
    await writeFile(file, JSON.stringify(project));
    await example(ada, 'millrace deploy --dry-run', { stderr: /\+ topic enriched[\s\S]*\+ task enrich/ });
    assert.deepEqual(await listed(ada, 'task', 'list'), []);
    await example(ada, 'millrace deploy', { stderr: /Deployed enrich as version 1/ });
    await example(ada, 'millrace task deploy enrich', { stderr: /Deployed enrich as version 2/ });
    await example(ada, 'millrace task deploy hello --code hello.ts --http public', {
      stderr: /Deployed hello as version 1[\s\S]*Its endpoint is http/,
    });
    const [{ endpointUrl }] = await listed(ada, 'task', 'status', 'hello');
    assert.equal(await (await fetch(endpointUrl)).text(), 'Hello you!');
    await example(ada, 'millrace task deploy echo --code bootstrap --runtime PROVIDED --handler echo', {
      stderr: /Deployed echo as version 1/,
    });
    const echoed = await run(ada, ['task', 'invoke', 'echo', '--event', '[1,2]', '--json']);
    assert.deepEqual(JSON.parse(echoed.stdout).result, { handler: 'echo', event: [1, 2] }, echoed.stderr);
  });

  it('runs tasks, also once with an event', async () => {
    const ada = desk();
    await Promise.all([
      example(ada, 'millrace task list', {
        stdout: /\necho +RUNNING[\s\S]*\nenrich +RUNNING +2 .*clicks +enriched\nhello +RUNNING/,
      }),
      example(ada, 'millrace task status enrich', { stdout: /^enrich {2}RUNNING {2}version 2\n/ }),
      example(ada, 'millrace task versions enrich', { stdout: /\n +1 .*\n +2 +yes / }),
    ]);
    await Promise.all([
      example(ada, `millrace task invoke hello --event '{"name":"Ada"}'`, { stdout: /"body": "Hello Ada!"/ }),
      example(ada, 'millrace task invoke enrich --file batch.json', {
        stdout: /^\{\n {2}"batchItemFailures": \[\]\n\}\n$/,
        stderr: /counted/,
      }),
    ]);
    assert.deepEqual((await listed(ada, 'state', 'get', 'page', '/shoes'))[0].attributes, { views: 1 });
  });

  it('shows what tasks print, also as they do', async () => {
    const ada = desk();
    const following = begin(ada, 'millrace task logs enrich -f');
    try {
      await following.shows(/"page":"\/shoes"/);
      const words = ['topic', 'publish', 'clicks', '--message', '{"page":"/gloves"}', '--message-key', 'u'];
      assert.equal((await run(ada, words)).code, 0);
      await following.shows(/"page":"\/gloves"/);
      assert.equal(await following.interrupt(), 130);
    } finally {
      await following.close();
    }
    await example(ada, 'millrace task logs enrich', { stdout: /^\S+Z v2 .*"page":"\/gloves"/m });
  });

  it('goes back and forth between versions, and pauses', async () => {
    const ada = desk();
    await example(ada, 'millrace task rollback enrich', { stdout: /^enrich .*version 1\n/ });
    await example(ada, 'millrace task activate enrich 2', { stdout: /^enrich .*version 2\n/ });
    await example(ada, 'millrace task pause enrich', { stdout: /^enrich {2}PAUS(ED|ING) {2}/ });
    await example(ada, 'millrace task resume enrich', { stdout: /^enrich {2}(RUNNING|RESUMING) {2}/ });
  });

  it('keeps what a task gave up on, and gives it to the task again', async () => {
    const ada = desk();
    const letters = () =>
      eventually('two messages are given up on', 60_000, async () => {
        const found = await listed(ada, 'task', 'dead-letters', 'enrich');
        return found.length === 2 ? found : undefined;
      });
    for (const key of ['user-1', 'user-2']) assert.equal((await run(ada, [...poison, key])).code, 0);
    const [one] = await letters();
    await example(ada, 'millrace task dead-letters enrich', {
      stdout: /\n\S+ +clicks +user-\d +1 +\S+Z +\S/,
    });
    await example(ada, 'millrace task redrive enrich m4Kx2LmQ7vRt9WbYc8Zn3J', {
      replaced: { m4Kx2LmQ7vRt9WbYc8Zn3J: one.id },
      stdout: /^1 given to the task again\n$/,
    });
    await letters();
    await example(ada, 'millrace task redrive enrich', { stdout: /^2 given to the task again\n$/ });
    await letters();
    await example(ada, 'millrace task purge enrich --yes', { stdout: /^2 thrown away\n$/ });
    assert.deepEqual(await listed(ada, 'task', 'dead-letters', 'enrich'), []);
  });

  it('deploys on every save, on a service that runs already', async () => {
    const ada = desk();
    const developing = begin(ada, 'millrace dev --no-serve');
    try {
      await developing.shows(/watching for changes/);
      const file = join(ada.directory, 'tasks/enrich.ts');
      await writeFile(file, `${await readFile(file, 'utf8')}\nconsole.log('loaded');\n`);
      await developing.shows(/~ task enrich[\s\S]*Deployed enrich as version 3[\s\S]*watching for changes/);
      assert.equal(await developing.interrupt(), 130);
    } finally {
      await developing.close();
    }
  });

  it('deletes what is not needed any more', async () => {
    const ada = desk();
    await example(ada, 'millrace task delete enrich --yes', { stderr: /Deleted\./ });
    assert.equal((await run(ada, ['task', 'status', 'enrich'])).code, 4);
    await example(ada, 'millrace topic delete clicks --yes', { stderr: /Deleted clicks\./ });
    assert.doesNotMatch((await run(ada, ['topic', 'list'])).stdout, /^clicks /m);
  });
}
