import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, timestamp } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Mailer } from './mail.ts';

/**
 * Mail for a laptop without a mail server: each mail is one JSON line of `outbox.jsonl` in the data
 * directory. Where a person watches the terminal the mail is shown there as well. It does not go into the
 * log, because mails carry codes and logs are kept and shipped.
 */
export function outboxMailer(options: {
  dataDirectory: string;
  clock: Clock;
  log: Log;
  /** Writes to the terminal, when there is one. */
  show?: ((text: string) => void) | undefined;
}): Mailer {
  const path = join(options.dataDirectory, 'outbox.jsonl');
  // One after the other, so that lines never mix.
  let last: Promise<void> = Promise.resolve();
  return {
    send(mail) {
      const line = JSON.stringify({ ...mail, sentAt: timestamp(options.clock.now()) });
      const written = last.then(() => appendFile(path, `${line}\n`, { mode: 0o600 }));
      last = written.catch(() => undefined);
      return written.then(() => {
        options.log.info({ event: 'mail.outbox', subject: mail.subject }, 'mail written to the outbox');
        options.show?.(`\n  Mail to ${mail.to}: ${mail.subject}\n${mail.text.replace(/^/gm, '    ')}\n`);
      });
    },
    close: () => last,
  };
}
