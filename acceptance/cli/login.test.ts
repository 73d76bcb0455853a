import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { call } from '../harness/client.ts';
import { codeIn, fresh, lastLetter, newOrganization, newPerson, password } from '../harness/people.ts';
import { type RunningService, startService } from '../harness/service.ts';
import { eventually } from '../harness/waiting.ts';
import { newPlace, noTerminal, run, Terminal } from './terminal.ts';

let service: RunningService;
let place: Awaited<ReturnType<typeof newPlace>>;
const secrets: string[] = [password];

before(async () => {
  service = await startService();
  place = await newPlace({ MILLRACE_ENDPOINT: service.url });
});
after(async () => {
  await service.remove();
  await place.remove();
});

const configFile = () => join(place.directory, 'config/millrace/config.json');

/** No terminal ever shows what was typed as a secret, nor what is kept. */
async function showsNoSecret(terminal: Terminal): Promise<void> {
  const kept = JSON.parse(await readFile(configFile(), 'utf8').catch(() => '{"profiles":{}}'));
  const { accessToken, refreshToken } = kept.profiles.default?.session ?? {};
  for (const secret of [...secrets, accessToken, refreshToken])
    if (secret !== undefined) assert.ok(!terminal.raw.includes(secret), 'a secret is shown');
}

describe('a session that several commands share', { timeout: 600_000 }, () => {
  it('is refreshed by all of them at once, and goes on', async () => {
    const person = await newPerson(service);
    const home = await newPlace({ MILLRACE_ENDPOINT: service.url });
    try {
      const login = ['login', '--username', person.username, '--password-stdin'];
      assert.equal((await run(home, login, password)).code, 0);
      const file = join(home.directory, 'config/millrace/config.json');
      const used = new Set<string>();
      for (let round = 0; round < 3; round += 1) {
        const config = JSON.parse(await readFile(file, 'utf8'));
        const { session } = config.profiles.default;
        assert.ok(!used.has(session.refreshToken), 'what was kept is new');
        used.add(session.refreshToken);
        // As after a quarter of an hour: a token that is not accepted any more.
        session.accessToken = `${session.accessToken.slice(0, -8)}12345678`;
        await writeFile(file, JSON.stringify(config));
        const answers = await Promise.all(Array.from({ length: 2 }, () => run(home, ['whoami', '--json'])));
        for (const { code, stdout, stderr } of answers) {
          assert.equal(code, 0, stderr);
          assert.equal(JSON.parse(stdout).username, person.username);
        }
      }
      const kept = JSON.parse(await readFile(file, 'utf8')).profiles.default.session;
      const token: string = kept.accessToken;
      assert.equal((await call(service.url, 'whoAmI', { token })).status, 200);
      assert.equal((await stat(file)).mode & 0o777, 0o600);
    } finally {
      await home.remove();
    }
  });
});

describe('signing in at a terminal', { skip: noTerminal ?? false, timeout: 600_000 }, () => {
  it('makes an account: name, email, password and the mailed code are asked for', async () => {
    const username = fresh('cli');
    const email = `${username}@example.com`;
    const terminal = new Terminal(place, ['signup']);
    await terminal.shows(/Username/);
    terminal.enter(username);
    await terminal.shows(/Email/);
    terminal.enter(email);
    await terminal.shows(/Password/);
    terminal.enter(password);
    await terminal.shows(/A code was mailed/);
    await terminal.shows(/Code/);
    const letter = await eventually('the code is mailed', 5_000, async () =>
      lastLetter(service, email).catch(() => undefined),
    );
    terminal.enter(codeIn(letter));
    await terminal.shows(/account is confirmed/);
    assert.equal(await terminal.end(), 0);
    await showsNoSecret(terminal);
  });

  it('asks for name and password, and keeps a session that only the owner can read', async () => {
    const person = await newPerson(service);
    const organization = await newOrganization(service, person);
    const terminal = new Terminal(place, ['login']);
    await terminal.shows(/Username or email/);
    terminal.enter(person.username);
    await terminal.shows(/Password/);
    terminal.enter(password);
    await terminal.shows(new RegExp(`Signed in as ${person.username}, organization ${organization}`));
    assert.equal(await terminal.end(), 0);
    await showsNoSecret(terminal);
    assert.equal((await stat(configFile())).mode & 0o777, 0o600);
    const who = await run(place, ['whoami', '--json']);
    assert.equal(JSON.parse(who.stdout).username, person.username, who.stderr);
  });

  it('says no to a wrong password', async () => {
    const person = await newPerson(service);
    const terminal = new Terminal(place, ['login', '--username', person.username]);
    await terminal.shows(/Password/);
    terminal.enter('not the password at all');
    await terminal.shows(/error: /);
    assert.notEqual(await terminal.end(), 0);
  });

  it('asks for a one-time code, again when it is wrong', async () => {
    const person = await newPerson(service);
    const token = person.accessToken;
    const { secret } = (await call(service.url, 'totpEnrol', { token })).body;
    const device = new TOTP({ secret: Secret.fromBase32(secret) });
    const first = device.generate();
    assert.equal((await call(service.url, 'totpConfirm', { token, body: { code: first } })).status, 200);
    const terminal = new Terminal(place, ['login', '--username', person.username]);
    await terminal.shows(/Password/);
    terminal.enter(password);
    await terminal.shows(/One-time code/);
    terminal.enter('000000');
    await terminal.shows(/One-time code[\s\S]*One-time code/);
    // A code is good for one use; that of the next half minute is accepted as well.
    terminal.enter(device.generate({ timestamp: Date.now() + 30_000 }));
    await terminal.shows(new RegExp(`Signed in as ${person.username}`));
    assert.equal(await terminal.end(), 0);
    await showsNoSecret(terminal);
  });

  it('asks for a new password after an invitation', async () => {
    const admin = await newPerson(service);
    const organization = await newOrganization(service, admin);
    const username = fresh('grace');
    const email = `${username}@example.com`;
    const invited = await call(service.url, 'inviteToOrganization', {
      token: admin.accessToken,
      path: { organizationName: organization },
      query: { email, username },
    });
    assert.equal(invited.status, 200, invited.text);
    const temporary = /^([0-9A-Za-z]{16})$/m.exec((await lastLetter(service, email)).text)?.[1] ?? '';
    const chosen = 'seven green bicycles at noon';
    secrets.push(temporary, chosen);
    const terminal = new Terminal(place, ['login', '--username', username]);
    await terminal.shows(/Password/);
    terminal.enter(temporary);
    await terminal.shows(/Choose a new password/);
    terminal.enter(chosen);
    await terminal.shows(/The same once more/);
    terminal.enter(chosen);
    await terminal.shows(new RegExp(`Signed in as ${username}, organization ${organization}`));
    assert.equal(await terminal.end(), 0);
    await showsNoSecret(terminal);
  });

  it('changes nothing when it is interrupted', async () => {
    const before = await readFile(configFile(), 'utf8');
    const terminal = new Terminal(place, ['login', '--username', 'somebody']);
    await terminal.shows(/Password/);
    terminal.type('half of a pass');
    terminal.interrupt();
    assert.equal(await terminal.end(), 130);
    assert.doesNotMatch(terminal.raw, /half of a pass/);
    assert.equal(await readFile(configFile(), 'utf8'), before);
  });

  it('asks before what cannot be undone, and a no changes nothing', async () => {
    const person = await newPerson(service);
    const organization = await newOrganization(service, person);
    const words = ['--organization', organization];
    const login = ['login', '--username', person.username, '--password-stdin', ...words];
    assert.equal((await run(place, login, password)).code, 0);
    assert.equal((await run(place, ['topic', 'set', 'clicks', '--batch'])).code, 0);
    const terminal = new Terminal(place, ['topic', 'delete', 'clicks']);
    await terminal.shows(/Delete the topic clicks\?/);
    terminal.enter('n');
    await terminal.shows(/Nothing was changed/);
    assert.equal(await terminal.end(), 1);
    assert.match((await run(place, ['topic', 'list'])).stdout, /clicks/);
    const unasked = await run(place, ['topic', 'delete', 'clicks']);
    assert.match(unasked.stderr, /Give --yes/);
    assert.equal(unasked.code, 1);
    assert.equal((await run(place, ['topic', 'delete', 'clicks', '--yes'])).code, 0);
    assert.doesNotMatch((await run(place, ['topic', 'list'])).stdout, /clicks/);
  });
});
