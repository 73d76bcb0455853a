import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { within } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';
import { openShop, type Shop } from './shop.ts';
import { noTerminal, run, start, Terminal } from './terminal.ts';

let shop: Shop;
before(async () => {
  shop = await openShop();
  assert.equal((await run(shop, ['topic', 'set', 'clicks', '--batch', '--stream', 'clicks'])).code, 0);
});
after(() => shop.remove());

async function writeClicks(name: string, count: number, size = 20): Promise<void> {
  const pad = 'x'.repeat(size);
  const lines = Array.from({ length: count }, (_value, index) =>
    JSON.stringify({ id: `${name}-${index}`, user: `u${index % 50}`, pad }),
  );
  await writeFile(join(shop.directory, name), lines.join('\n'));
}

async function countOf(name: string): Promise<number> {
  const sql = `SELECT count(*) AS n FROM clicks WHERE id LIKE '${name}-%'`;
  const { stdout, stderr } = await run(shop, ['query', 'run', sql, '--json']);
  assert.notEqual(stdout, '', stderr);
  const [row] = [JSON.parse(stdout)].flat();
  return Number(row.n);
}

const publishing = (name: string) => [
  ...['topic', 'publish', 'clicks', '--file', name, '--key', '/user', '--id', '/id'],
];

describe('publishing a file at a terminal', { skip: noTerminal ?? false, timeout: 600_000 }, () => {
  it('shows a bar with the share, the count and the rate, and then the sum', async () => {
    await writeClicks('bar', 60_000, 100);
    const terminal = new Terminal(shop, publishing('bar'));
    await terminal.shows(/publishing to clicks {2}[█░]{24} +\d+ % {2}[\d,]+ {2}[\d,]+\/s/);
    await terminal.shows(/Published 60,000 messages to clicks in [\d.]+ s \([\d,]+\/s\)\./);
    assert.equal(await terminal.end(), 0);
    assert.equal(await countOf('bar'), 60_000);
  });

  it('ends with ctrl-C, tells exactly how many were published, and goes on when it is run again', async () => {
    await writeClicks('cut', 200_000, 100);
    const terminal = new Terminal(shop, publishing('cut'));
    await terminal.shows(/publishing to clicks {2}[█░]{24} +[1-9]\d? %/, 60_000);
    terminal.interrupt();
    const [, told = ''] = await terminal.shows(/Stopped after publishing ([\d,]+) messages/);
    assert.equal(await terminal.end(), 130);
    const published = Number(told.replaceAll(',', ''));
    assert.ok(published > 0 && published < 200_000, told);
    assert.equal(await countOf('cut'), published);
    const again = await run(shop, [...publishing('cut'), '--json']);
    assert.equal(again.code, 0, again.stderr);
    const duplicates = published;
    assert.deepEqual(JSON.parse(again.stdout), { accepted: 200_000 - published, duplicates, rejected: 0 });
  });

  it('reads from the terminal until ctrl-D, and ends with ctrl-C while it waits', async () => {
    const words = ['topic', 'publish', 'clicks', '--key', '/user'];
    const terminal = new Terminal(shop, words);
    await terminal.shows(/Reading messages from the terminal/);
    terminal.enter('{"id":"typed-1","user":"u"}');
    terminal.type('\u0004');
    await terminal.shows(/Published 1 message to clicks/);
    assert.equal(await terminal.end(), 0);
    const waiting = new Terminal(shop, words);
    await waiting.shows(/Reading messages from the terminal/);
    waiting.interrupt();
    assert.equal(await waiting.end(), 130);
  });
});

describe('publishing without a terminal', { timeout: 600_000 }, () => {
  it('draws nothing, and stops reading what never ends when it is told to', async () => {
    const running = start(shop, ['topic', 'publish', 'clicks', '--key', '/user']);
    running.child.stdin?.write('{"id":"pipe-1","user":"u"}\n{"id":"pipe-2","user":"u"}\n');
    await eventually('both are there', 20_000, async () =>
      (await countOf('pipe')) === 2 ? true : undefined,
    );
    running.child.kill('SIGTERM');
    const { code, stderr } = await running.ended;
    assert.equal(code, 130);
    assert.match(stderr, /Stopped after publishing 2 messages/);
    assert.ok(!stderr.includes('\u001b'), stderr);
  });

  it('tells which records were refused and why', async () => {
    const input = '{"user":"u"}\nnonsense\n{"nobody":1}\n';
    const { code, stdout, stderr } = await run(
      shop,
      ['topic', 'publish', 'clicks', '--key', '/user', '--json'],
      input,
    );
    assert.equal(code, 1);
    assert.deepEqual(JSON.parse(stdout), { accepted: 1, duplicates: 0, rejected: 2 });
    assert.match(stderr, /record 2 rejected: .*MALFORMED_JSON[\s\S]*record 3 rejected: .*\/user/);
    const one = await run(shop, ['topic', 'publish', 'clicks', '--key', '/user'], 'nonsense');
    assert.match(one.stderr, /Published 0 messages .*, 1 rejected\.\nerror: 1 message was rejected\.\n$/);
  });

  it('takes CSV, and refuses what is none before it publishes more', async () => {
    const good = 'id,user,n\ncsv-1,a,1\ncsv-2,"b, c",2\n';
    const words = ['topic', 'publish', 'clicks', '--format', 'csv', '--key', '/user'];
    assert.equal((await run(shop, words, good)).code, 0);
    assert.equal(await countOf('csv'), 2);
    const bad = await run(shop, words, 'id,user\ncsv-3,"open');
    assert.equal(bad.code, 1);
    assert.match(bad.stderr, /ends inside a quoted field/);
  });

  it('holds little of a large file in memory', async () => {
    await writeClicks('large', 300_000, 400);
    const limited = {
      ...shop,
      environment: { ...shop.environment, NODE_OPTIONS: '--max-old-space-size=96' },
    };
    const { code, stderr } = await run(limited, publishing('large'));
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Published 300,000 messages/);
  });
});

describe('following a topic', { timeout: 600_000 }, () => {
  it('shows messages as they come, with nothing in them that steers the terminal', {
    skip: noTerminal ?? false,
  }, async () => {
    const terminal = new Terminal(shop, ['topic', 'tail', 'clicks']);
    await terminal.shows(/Waiting for messages of clicks/);
    const hostile = JSON.stringify({ text: '\u001b]0;owned\u0007\u009b2J', user: 'u' });
    const words = ['topic', 'publish', 'clicks', '--message', hostile, '--message-key', 'k\u001b[31m'];
    const seen = eventually('a message is shown', 30_000, async () => {
      await run(shop, words);
      return terminal.text.includes('owned') ? true : undefined;
    });
    await seen;
    terminal.interrupt();
    assert.equal(await terminal.end(), 130);
    assert.ok(!terminal.raw.includes('\u001b]0;') && !terminal.raw.includes('\u009b'), terminal.raw);
    assert.ok(!terminal.raw.includes('k\u001b[31m'));
  });

  it('gives lines of JSON to programs, and ends when nobody reads any more', async () => {
    const running = start(shop, ['topic', 'tail', 'clicks', '--json', '--key', 'tailed']);
    await eventually('a message is there', 30_000, async () => {
      await run(shop, ['topic', 'publish', 'clicks', '--message', '{"n":1}', '--message-key', 'tailed']);
      return running.output().stdout.includes('\n') ? true : undefined;
    });
    const [line = ''] = running.output().stdout.split('\n');
    assert.deepEqual(JSON.parse(line).body, { n: 1 });
    assert.equal(JSON.parse(line).messageKey, 'tailed');
    running.child.stdout?.destroy();
    await eventually('the command ends', 30_000, async () => {
      await run(shop, ['topic', 'publish', 'clicks', '--message', '{"n":2}', '--message-key', 'tailed']);
      return running.child.exitCode ?? undefined;
    });
    assert.equal(running.child.exitCode, 0);
  });
});

describe('uploading code', { skip: noTerminal ?? false, timeout: 600_000 }, () => {
  it('ends with ctrl-C in the middle, and nothing of it is there', async () => {
    const folder = join(shop.directory, 'heavy');
    await mkdir(folder);
    await writeFile(join(folder, 'index.mjs'), 'export const handler = async () => ({});');
    await writeFile(join(folder, 'noise.bin'), randomBytes(120_000_000));
    const terminal = new Terminal(shop, ['task', 'deploy', 'heavy', '--code', 'heavy']);
    await terminal.shows(/uploading heavy {2}[█░]{24} +\d+ %/, 60_000);
    terminal.interrupt();
    assert.equal(await terminal.end(), 130);
    const status = await run(shop, ['task', 'status', 'heavy']);
    assert.equal(status.code, 4, status.stdout + status.stderr);
  });
});

describe('downloading', { timeout: 600_000 }, () => {
  it('saves a file whole under its name, and nothing when it fails', async () => {
    await writeClicks('down', 100);
    assert.equal((await run(shop, publishing('down'))).code, 0);
    await countOf('down');
    const listed = await run(shop, ['topic', 'files', 'clicks', '--json', '--limit', '1']);
    const { key, size } = JSON.parse(listed.stdout);
    const saved = await run(shop, ['topic', 'download', 'clicks', key, '--output', 'one.parquet', '--json']);
    assert.deepEqual(JSON.parse(saved.stdout), { file: 'one.parquet' }, saved.stderr);
    const piped = start(shop, ['topic', 'download', 'clicks', key, '--output', '-']);
    const chunks: Buffer[] = [];
    piped.child.stdout
      ?.setEncoding('latin1')
      .on('data', (text: string) => chunks.push(Buffer.from(text, 'latin1')));
    await piped.ended;
    assert.equal(Buffer.concat(chunks).length, size);
    const missing = await run(shop, ['topic', 'download', 'clicks', `${key}x`]);
    assert.equal(missing.code, 4, missing.stderr);
    const files = await readdir(shop.directory);
    assert.deepEqual(
      files.filter((name) => name.endsWith('.part')),
      [],
    );
  });
});

describe('publishing that fails', { timeout: 600_000 }, () => {
  it('stops reading at once when the key is refused, however much there is to read', async () => {
    const stranger = { ...shop, environment: { ...shop.environment, MILLRACE_API_KEY: 'mr_wrong' } };
    const running = start(stranger, ['topic', 'publish', 'clicks', '--key', '/user']);
    const lines = '{"user":"u"}\n'.repeat(5_000);
    const feeding = setInterval(() => running.child.stdin?.write(lines), 20);
    try {
      const { code, stderr } = await within(running.ended, 30_000, 'it did not end');
      assert.equal(code, 3, stderr);
      assert.match(stderr, /Stopped after publishing 0 messages/);
    } finally {
      clearInterval(feeding);
    }
  });

  it('tells what is certain when the service is gone', async () => {
    const other = await openShop();
    try {
      const lines = Array.from(
        { length: 300_000 },
        (_value, index) => `{"id":"i${index}","user":"u${index % 9}"}`,
      );
      await writeFile(join(other.directory, 'many'), lines.join('\n'));
      const words = ['topic', 'publish', 'clicks', '--file', 'many', '--key', '/user', '--id', '/id'];
      const running = start(other, words);
      const tail = start(other, ['topic', 'tail', 'clicks', '--json', '--limit', '1']);
      await within(tail.ended, 60_000, 'nothing was published');
      await other.service.kill();
      const { code, stderr } = await within(running.ended, 60_000, 'it did not end');
      assert.equal(code, 1, stderr);
      assert.match(
        stderr,
        /Stopped after publishing at least [\d,]+ messages[\s\S]*Run it again[\s\S]*could not be reached/,
      );
    } finally {
      await other.remove();
    }
  });
});
