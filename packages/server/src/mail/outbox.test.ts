import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { adjustableClock } from '../platform/clock.ts';
import { outboxMailer } from './outbox.ts';

it('the outbox has one JSON line a mail, in order, for the owner only, and the log has none of the text', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'millrace-outbox-'));
  try {
    const logged: object[] = [];
    const shown: string[] = [];
    const keep = (fields: object) => logged.push(fields);
    const mailer = outboxMailer({
      dataDirectory: directory,
      clock: adjustableClock(1_794_700_800_000),
      log: { debug: keep, info: keep, warn: keep, error: keep },
      show: (text) => shown.push(text),
    });
    const mails = Array.from({ length: 50 }, (_value, index) => ({
      to: `person${index}@example.com`,
      subject: `Number ${index}`,
      text: `two\nlines with the code 48${index}`,
    }));
    await Promise.all(mails.map((mail) => mailer.send(mail)));
    await mailer.close();
    const path = join(directory, 'outbox.jsonl');
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
    const sentAt = new Date(1_794_700_800_000).toISOString();
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      mails.map((mail) => ({ ...mail, sentAt })),
    );
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal(shown.length, 50);
    assert.doesNotMatch(JSON.stringify(logged), /the code/);
  } finally {
    await rm(directory, { recursive: true });
  }
});
