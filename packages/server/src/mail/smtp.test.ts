import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { SMTPServer } from 'smtp-server';
import type { Log } from '../platform/log.ts';
import { silentLog } from '../platform/log.ts';
import { MailQueueFullError } from './mail.ts';
import { smtpMailer } from './smtp.ts';

const mail = { to: 'ada@example.com', subject: 'Confirm your account', text: 'The code is\n\n482913\n' };

/** A real SMTP server that keeps what it is given, after refusing the first few. */
async function mailServer(refusals = 0): Promise<{
  url: string;
  received: string[];
  recipients: string[];
  arrived(count: number): Promise<void>;
  close(): Promise<void>;
}> {
  const received: string[] = [];
  const recipients: string[] = [];
  const waiting: (() => void)[] = [];
  let refuse = refusals;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onAuth: (auth, _session, callback) => {
      const right = auth.username === 'millrace' && auth.password === 'sesame';
      callback(right ? null : new Error('wrong'), right ? { user: 'millrace' } : undefined);
    },
    onRcptTo: (address, _session, callback) => {
      recipients.push(address.address);
      callback();
    },
    onData: (stream, _session, callback) => {
      let text = '';
      stream.setEncoding('utf8');
      stream.on('data', (chunk: string) => {
        text += chunk;
      });
      stream.on('end', () => {
        if (refuse > 0) {
          refuse -= 1;
          callback(Object.assign(new Error('try again later'), { responseCode: 451 }));
          return;
        }
        received.push(text);
        callback();
        for (const wake of waiting.splice(0)) wake();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://millrace:sesame@127.0.0.1:${port}`,
    received,
    recipients,
    arrived: async (count) => {
      const limit = AbortSignal.timeout(10_000);
      while (received.length < count) {
        limit.throwIfAborted();
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
          limit.addEventListener('abort', () => resolve(), { once: true });
        });
      }
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

describe('mail over SMTP', () => {
  const options = (url: string, log: Log = silentLog) => ({
    url,
    from: 'Millrace <millrace@example.com>',
    log,
    retryMilliseconds: 20,
  });

  it('reaches a real server with sender, recipient, subject and text', async () => {
    const server = await mailServer();
    const mailer = smtpMailer(options(server.url));
    await mailer.send(mail);
    await server.arrived(1);
    await mailer.close();
    await server.close();
    assert.deepEqual(server.recipients, ['ada@example.com']);
    const [text = ''] = server.received;
    assert.match(text, /^From: Millrace <millrace@example\.com>/m);
    assert.match(text, /^Subject: Confirm your account/m);
    assert.match(text, /^482913/m);
  });

  it('is tried again when the server refuses for now', async () => {
    const server = await mailServer(2);
    const logged: string[] = [];
    const keep = (fields: object) => logged.push(JSON.stringify(fields));
    const mailer = smtpMailer(options(server.url, { debug: keep, info: keep, warn: keep, error: keep }));
    await mailer.send(mail);
    await server.arrived(1);
    await mailer.close();
    await server.close();
    assert.equal(logged.length, 2);
    assert.doesNotMatch(logged.join(), /482913|sesame|ada@example/);
  });

  it('does not make anybody wait for a server that is down, nor fill the memory', async () => {
    const server = await mailServer();
    await server.close();
    const mailer = smtpMailer({ ...options(server.url), retryMilliseconds: 60_000 });
    const sent = await Promise.allSettled(Array.from({ length: 1001 }, () => mailer.send(mail)));
    const refused = sent.filter((each) => each.status === 'rejected');
    assert.equal(refused.length, 1);
    assert.ok(refused[0]?.status === 'rejected' && refused[0].reason instanceof MailQueueFullError);
    await mailer.close();
  });

  it('cannot be made to write other headers or recipients', async () => {
    const server = await mailServer();
    const mailer = smtpMailer(options(server.url));
    await mailer.send({ ...mail, subject: 'Hello\r\nBcc: mallory@example.com' });
    await server.arrived(1);
    await mailer.close();
    await server.close();
    assert.deepEqual(server.recipients, ['ada@example.com']);
    assert.doesNotMatch(server.received[0] ?? '', /^Bcc:/m);
  });
});
