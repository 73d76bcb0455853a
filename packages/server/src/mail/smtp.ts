import { createTransport } from 'nodemailer';
import type { Log } from '../platform/log.ts';
import { type Mail, type Mailer, MailQueueFullError } from './mail.ts';

const waitingLimit = 1000;
const attempts = 4;
const closeMilliseconds = 5000;

/**
 * Mail through an SMTP server. A mail is accepted into a bounded queue and delivered in the background,
 * so that neither the speed nor the health of the mail server shows in the answer to a request. A mail
 * that a crash takes is asked for again by the person who waits for it.
 */
export function smtpMailer(options: {
  url: string;
  from: string;
  log: Log;
  /** How long to wait before another attempt. */
  retryMilliseconds?: number;
}): Mailer {
  const transport = createTransport({
    url: options.url,
    pool: true,
    maxConnections: 4,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 30_000,
  });
  const retryMilliseconds = options.retryMilliseconds ?? 2000;
  const underway = new Set<Promise<void>>();
  const closing = new AbortController();

  async function deliver(mail: Mail): Promise<void> {
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      try {
        await transport.sendMail({
          from: options.from,
          to: { name: '', address: mail.to },
          subject: mail.subject,
          text: mail.text,
        });
        return;
      } catch (error) {
        const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
        const fields = { event: 'mail.failed', subject: mail.subject, attempt, reason };
        options.log.warn(fields, 'mail could not be delivered');
        if (attempt === attempts || closing.signal.aborted) return;
        await pause(retryMilliseconds * 2 ** (attempt - 1), closing.signal);
      }
    }
  }

  return {
    async send(mail) {
      if (underway.size >= waitingLimit) throw new MailQueueFullError();
      const delivery = deliver(mail).finally(() => underway.delete(delivery));
      underway.add(delivery);
    },
    async close() {
      const deadline = AbortSignal.timeout(closeMilliseconds);
      await Promise.race([Promise.all(underway), pause(closeMilliseconds, deadline)]);
      closing.abort();
      transport.close();
    },
  };
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    timer.unref();
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
