import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { codeIn, lastLetter, newApiKey, newOrganization, newPerson, password } from '../harness/people.ts';
import { type RunningService, startService } from '../harness/service.ts';
import { atTerminal, begin, type Desk, example, listed, newDesk, unexecuted } from './reference-desk.ts';
import { batch, bootstrap, clicks, clicksSchema, hello, users, visits } from './reference-fixtures.ts';
import { taskExamples } from './reference-tasks.ts';
import { topicExamples } from './reference-topics.ts';
import { noTerminal, run } from './terminal.ts';

/** What cannot be tried without a pseudo terminal. */
const asking = ['millrace signup', 'millrace login', 'millrace query'];

// Two people follow the reference at the same time: more would only wait for each other on a small machine.
describe('every example of the reference', { concurrency: 2, timeout: 600_000 }, () => {
  describe('on a service that runs', { concurrency: false }, () => {
    let service: RunningService;
    let ada: Desk;
    before(async () => {
      service = await startService();
      ada = await newDesk({ MILLRACE_ENDPOINT: service.url, PASSWORD: password });
      const files = {
        'clicks.ndjson': clicks,
        'visits.csv': visits,
        'users.json': users,
        'clicks.schema.json': clicksSchema,
        'batch.json': batch,
        'hello.ts': hello,
      };
      for (const [name, text] of Object.entries(files)) await writeFile(join(ada.directory, name), text);
      await writeFile(join(ada.directory, 'bootstrap'), bootstrap, { mode: 0o755 });
    });
    after(async () => {
      await service.remove();
      await ada.remove();
    });

    const mailed = async (email: string) => codeIn(await lastLetter(service, email));

    it('makes an account', async () => {
      await example(
        ada,
        'echo "$PASSWORD" | millrace signup --username ada --email ada@example.com --password-stdin',
        { stderr: /A code was mailed[\s\S]*millrace confirm ada/ },
      );
      await example(ada, 'millrace confirm ada 123456', {
        replaced: { 123456: await mailed('ada@example.com') },
        stderr: /account is confirmed/,
      });
    });

    it('asks at a terminal for a new account', { skip: noTerminal ?? false }, async () => {
      const terminal = atTerminal(ada, 'millrace signup');
      await terminal.shows(/Username/);
      terminal.enter('hedy');
      await terminal.shows(/Email/);
      terminal.enter('hedy@example.com');
      await terminal.shows(/Password/);
      terminal.enter(password);
      await terminal.shows(/A code was mailed[\s\S]*Code/);
      terminal.enter(await mailed('hedy@example.com'));
      await terminal.shows(/account is confirmed/);
      assert.equal(await terminal.end(), 0);
    });

    it('asks at a terminal who signs in', { skip: noTerminal ?? false }, async () => {
      const terminal = atTerminal(ada, 'millrace login');
      await terminal.shows(/Username or email/);
      terminal.enter('ada');
      await terminal.shows(/Password/);
      terminal.enter(password);
      await terminal.shows(/Signed in as ada/);
      assert.equal(await terminal.end(), 0);
    });

    it('makes an organization', async () => {
      if (noTerminal !== undefined)
        await run(ada, ['login', '--username', 'ada', '--password-stdin'], password);
      await example(ada, 'millrace org create acme', { stderr: /Made the organization acme/ });
      await Promise.all([
        example(ada, 'millrace whoami', { stdout: /^ada <ada@example\.com>\n {2}acme {2}ADMIN\n$/ }),
        example(ada, 'millrace whoami --json', { stdout: /^\{.*"username":"ada".*\}\n$/ }),
      ]);
      await Promise.all([
        example(ada, 'millrace org list', { stdout: /\nacme +ADMIN\n/ }),
        example(ada, 'millrace org use acme', { stderr: /Using acme\./ }),
      ]);
      await Promise.all([
        example(ada, 'millrace doctor', { stdout: /ok +service[\s\S]*ok +credential +signed in as ada/ }),
        example(ada, 'millrace org rate-limit', { stdout: /^DEFAULT\n$/ }),
      ]);
      await example(ada, 'millrace org rate-limit HUNDRED', { stdout: /^HUNDRED\n$/ });
    });

    it('has members', async () => {
      // Grace gets an account with the first invitation, and needs none with the second.
      await example(ada, 'millrace org invite grace@example.com --username grace', {
        stderr: /Invited grace@example\.com/,
      });
      assert.match((await lastLetter(service, 'grace@example.com')).text, /^[0-9A-Za-z]{16}$/m);
      await example(ada, 'millrace org role grace ADMIN', { stderr: /grace is ADMIN now/ });
      await example(ada, 'millrace org members', { stdout: /\ngrace +grace@example\.com +ADMIN/ });
      await example(ada, 'millrace org remove grace --yes', { stderr: /Removed grace/ });
      assert.equal((await listed(ada, 'org', 'members')).length, 1);
      await example(ada, 'millrace org invite grace@example.com', { stderr: /Invited grace@example\.com/ });
      assert.equal((await listed(ada, 'org', 'members')).length, 2);
    });

    it('has keys', async () => {
      const secret = await example(ada, 'millrace key create "the web shop" --topic clicks', {
        stdout: /^mr_\S+\n$/,
        stderr: /Keep the secret/,
      });
      const exported = await example(ada, 'export MILLRACE_API_KEY=$(millrace key create ci)', {
        afterwards: 'echo "$MILLRACE_API_KEY" && millrace topic list',
        stdout: /^mr_\S+\n/,
      });
      assert.notEqual(exported, secret);
      const shown = await example(ada, 'millrace key list', { stdout: /the web shop +ada +clicks +never/ });
      const id = /^(\S+) +the web shop/m.exec(shown)?.[1] ?? '';
      await example(ada, 'millrace key revoke k4Jm2nXv5KpLw3RtYb7Zc1 --yes', {
        replaced: { k4Jm2nXv5KpLw3RtYb7Zc1: id },
        stderr: /Revoked/,
      });
      assert.deepEqual(
        (await listed(ada, 'key', 'list')).map(({ description }) => description),
        ['ci'],
      );
    });

    topicExamples(() => ada);
    taskExamples(() => ada);

    it('has profiles, and ends sessions', async () => {
      const login = ['login', '--profile', 'staging', '--username', 'ada', '--password-stdin'];
      assert.equal((await run(ada, login, password)).code, 0);
      await example(ada, 'millrace profile list', {
        stdout: /\ndefault +yes .*session\nstaging .*session\n/,
      });
      await example(ada, 'millrace logout', { stderr: /Signed out/ });
      assert.equal((await run(ada, ['whoami'])).code, 3);
      await example(ada, 'millrace profile use staging', { stderr: /Using the profile staging/ });
      assert.equal((await run(ada, ['whoami'])).code, 0);
    });

    it('is used from elsewhere with a key', async () => {
      const { stdout } = await run(ada, ['key', 'create', 'elsewhere', '--organization', 'acme']);
      const elsewhere = await newDesk({});
      try {
        await example(
          elsewhere,
          'millrace login --endpoint https://data.example.com --api-key mr_... --organization acme',
          {
            replaced: { 'https://data.example.com': service.url, 'mr_...': stdout.trim() },
            stderr: /Signed in to acme with an API key/,
          },
        );
        assert.match((await run(elsewhere, ['topic', 'list'])).stdout, /^visits /m);
      } finally {
        await elsewhere.remove();
      }
    });
  });

  describe('that runs a service of its own', { concurrency: false }, () => {
    let desk: Desk;
    before(async () => {
      desk = await newDesk({ MILLRACE_PORT: '0', MILLRACE_LOG_LEVEL: 'warn' });
    });
    after(() => desk.remove());

    it('serves until ctrl-C', async () => {
      const other = join(desk.directory, 'other');
      const services = [
        begin(desk, 'millrace serve'),
        begin(desk, 'millrace serve --port 9000 --data-dir /var/lib/millrace', {
          9000: '0',
          '/var/lib/millrace': other,
        }),
      ];
      try {
        for (const running of services) {
          const [, url] = await running.shows(/^millrace ready on (\S+)$/m);
          assert.equal((await fetch(`${url}/readyz`)).status, 200);
          assert.equal(await running.interrupt(), 0);
        }
      } finally {
        await Promise.all(services.map((running) => running.close()));
      }
      for (const folder of [join(desk.directory, 'data'), other])
        assert.ok((await readdir(folder)).length > 0, folder);
    });

    it('serves and deploys a project', async () => {
      // The reader has an account on the service that was just served.
      const service = await startService({ dataDirectory: join(desk.directory, 'data') });
      const variables: Record<string, string> = {};
      try {
        const person = await newPerson(service);
        const organization = await newOrganization(service, person);
        const { secret } = await newApiKey(service, person.accessToken, organization);
        Object.assign(variables, { MILLRACE_ORGANIZATION: organization, MILLRACE_API_KEY: secret });
      } finally {
        await service.stop();
      }
      const project = { ...desk, environment: { ...desk.environment, ...variables } };
      assert.equal((await run(project, ['task', 'init', 'enrich'])).code, 0);
      const developing = begin(project, 'millrace dev');
      try {
        const [, url] = await developing.shows(/The service is at (\S+)\.\n/);
        await developing.shows(/Deployed enrich as version 1[\s\S]*watching for changes/);
        assert.equal(await developing.interrupt(), 130);
        await assert.rejects(fetch(`${url}/livez`));
      } finally {
        await developing.close();
      }
    });

    it('shows the tour', async () => {
      await example(desk, 'millrace demo', { stdout: /█/, stderr: /100,000 durable[\s\S]*That took/ });
    });

    it('shows the tour, and goes on', async () => {
      const running = begin(desk, 'millrace demo --keep --events 10000 --port 8080 --data-dir ./demo-data', {
        8080: '0',
      });
      try {
        const [, url] = await running.shows(/The service goes on at (\S+);/);
        assert.equal((await fetch(`${url}/readyz`)).status, 200);
        const visits = await run(desk, ['topic', 'list', '--profile', 'demo']);
        assert.match(visits.stdout, /^visits /m, visits.stderr);
        assert.equal(await running.interrupt(), 130);
      } finally {
        await running.close();
      }
    });

    it('completes commands', async () => {
      const folder = join(desk.directory, '.config/fish/completions');
      await mkdir(folder, { recursive: true });
      await Promise.all([
        example(desk, 'source <(millrace completion bash)', {
          afterwards: 'complete -p millrace',
          stdout: /^complete -o default -F _millrace millrace\n$/,
        }),
        example(desk, 'millrace completion fish > ~/.config/fish/completions/millrace.fish'),
        // What zsh makes of it is tested where there is a zsh.
        example(desk, "echo 'source <(millrace completion zsh)' >> ~/.zshrc"),
      ]);
      assert.match(await readFile(join(folder, 'millrace.fish'), 'utf8'), /\ncomplete -c millrace /);
      assert.match(await readFile(join(desk.directory, '.zshrc'), 'utf8'), /^source <\(/);
    });
  });
});

describe('the reference', () => {
  it('has no example that was not executed here', () => {
    const left = unexecuted().filter((line) => noTerminal === undefined || !asking.includes(line));
    assert.deepEqual(left, []);
  });
});
