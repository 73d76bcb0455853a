import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../acceptance/harness/waiting.ts';

export interface Walk {
  /** Of the service that is walked through. */
  readonly url: string;
  /** Where the packages are installed; the command line is the one from there. */
  readonly app: string;
  /** What the service wrote to its outbox. */
  outbox(): Promise<string>;
}

const commandMilliseconds = 60_000;
const countedMilliseconds = 60_000;
const username = 'ada';
const password = 'correct horse battery staple';

/**
 * What the first hour is about, with the command line of the packages and nothing else: signs up, makes an
 * organization, writes a task and deploys it, publishes, and asks until the task has handled everything.
 */
export async function walk({ url, app, outbox }: Walk): Promise<void> {
  const project = await mkdtemp(join(tmpdir(), 'millrace-walk-'));
  try {
    await visit(project, { url, app, outbox });
  } finally {
    await rm(project, { recursive: true, force: true });
  }
}

async function visit(project: string, { url, app, outbox }: Walk): Promise<void> {
  await symlink(join(app, 'node_modules'), join(project, 'node_modules'));
  const config = join(project, '.config');
  await mkdir(config);
  const millrace = (words: readonly string[], input = '') =>
    command(join(app, 'node_modules/.bin/millrace'), words, input, project, {
      PATH: process.env.PATH,
      HOME: project,
      XDG_CONFIG_HOME: config,
      MILLRACE_ENDPOINT: url,
    });
  await millrace(
    ['signup', '--username', username, '--email', `${username}@example.com`, '--password-stdin'],
    `${password}\n`,
  );
  const code = await eventually('a code is mailed', commandMilliseconds, async () => {
    const [last = '{}'] = (await outbox()).trim().split('\n').slice(-1);
    const mail: { readonly text?: string } = JSON.parse(last);
    return /^\d{6}$/m.exec(mail.text ?? '')?.[0];
  });
  await millrace(['confirm', username, code]);
  await millrace(['login', '--username', username, '--password-stdin'], `${password}\n`);
  await millrace(['org', 'create', 'acme']);
  await millrace(['task', 'init', 'counter', '--input', 'clicks', '--output', 'counted']);
  await millrace(['deploy']);
  const clicks = Array.from({ length: 50 }, (_, index) => ({ id: `c-${index}`, page: `/${index % 5}` }));
  await writeFile(
    join(project, 'clicks.ndjson'),
    clicks.map((click) => `${JSON.stringify(click)}\n`).join(''),
  );
  await millrace(['topic', 'publish', 'clicks', '--file', 'clicks.ndjson', '--id', '/id']);
  const count = async (topic: string) => {
    const answer = await millrace(['query', 'run', `SELECT count(*) AS n FROM ${topic}`, '--output', 'csv']);
    return Number(answer.trim().split('\n').at(-1));
  };
  assert.equal(await count('clicks'), clicks.length);
  // There is no table before there is a message.
  await eventually('the task has passed everything on', countedMilliseconds, async () =>
    (await count('counted').catch(() => 0)) === clicks.length ? true : undefined,
  );
}

function command(
  path: string,
  words: readonly string[],
  input: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      path,
      words,
      { cwd, env, timeout: commandMilliseconds },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`millrace ${words.join(' ')} failed.\n${stdout}${stderr}`, { cause: error }));
      },
    );
    child.stdin?.end(input);
  });
}
