import { Millrace } from '@millrace/client';
import { type Command, CommandError, type Invocation } from '../command.ts';
import { headers, patience } from '../connection.ts';
import { Profiles } from '../profile.ts';
import { askSecret, askText, readInput } from '../prompt.ts';

const secondFactorTries = 3;

/** A client without a credential. */
async function visitorOf({ endpoint, output }: Invocation): Promise<Millrace> {
  return new Millrace({ endpoint: await endpoint(), headers, retry: patience(output) });
}

async function login(invocation: Invocation): Promise<void> {
  const { options, output, profiles, signal } = invocation;
  const endpoint = await invocation.endpoint();
  const organization = options.text('organization');
  const apiKey = options.text('api-key');
  if (apiKey !== undefined) {
    if (organization === undefined)
      throw new CommandError('An API key belongs to an organization: give --organization as well.');
    await new Millrace({ endpoint, apiKey, organization, headers }).topics.definitions({ signal });
    await profiles.update({ endpoint, apiKey, organization, session: undefined });
    const profile = await profiles.name();
    output.done(
      { profile, organization },
      `Signed in to ${organization} with an API key, kept in the profile "${profile}".`,
    );
    return;
  }
  const visitor = await visitorOf(invocation);
  await visitor.ping({ signal });
  const usernameOrEmail =
    options.text('username') ?? (await askText(invocation, 'Username or email', 'Give --username.'));
  const password = options.flag('password-stdin')
    ? (await readInput(invocation)).replace(/\r?\n$/, '')
    : await askSecret(invocation, 'Password', 'Pipe it in and give --password-stdin.');
  const session = await signIn(invocation, visitor, usernameOrEmail, password);
  const { username, organizations } = await visitor.withSession(session).authentication.whoAmI({ signal });
  const only = organizations.length === 1 ? organizations[0]?.organizationName : undefined;
  const wanted = organization ?? (await profiles.profile()).organization ?? only;
  const isMember = organizations.some(({ organizationName }) => organizationName === wanted);
  const used = isMember ? wanted : only;
  await profiles.update({ endpoint, session, apiKey: undefined, organization: used });
  output.done(
    { profile: await profiles.name(), username, organization: used },
    `Signed in as ${username}${used === undefined ? '' : `, organization ${used}`}.`,
  );
  if (invocation.environment.MILLRACE_API_KEY)
    output.note('MILLRACE_API_KEY is set, and wins over the session that was kept.');
  if (organizations.length === 0) output.note('Make an organization with `millrace org create <name>`.');
}

type Tokens = { readonly accessToken: string; readonly refreshToken: string };

/** Signs in, answering whatever else the service asks for. */
async function signIn(
  invocation: Invocation,
  { authentication }: Millrace,
  usernameOrEmail: string,
  password: string,
): Promise<Tokens> {
  const { output, options, signal } = invocation;
  let answer = await authentication.signIn({ usernameOrEmail, password }, { signal });
  if (answer.codeRequired !== undefined) {
    const { username } = answer.codeRequired;
    const code = await askText(
      invocation,
      'The account is not confirmed yet. Code from the mail',
      'Run it in a terminal.',
    );
    const confirmed = await authentication.confirm({ username, code }, { signal });
    if (confirmed.errorMsg !== undefined) throw new CommandError(confirmed.errorMsg);
    answer = await authentication.signIn({ usernameOrEmail, password }, { signal });
  }
  for (let tries = 0; answer.challengeTotpCode !== undefined && tries < secondFactorTries; tries += 1) {
    const challenge = answer.challengeTotpCode;
    const given = tries === 0 ? options.text('code') : undefined;
    const code = given ?? (await askText(invocation, 'One-time code', 'Give --code.'));
    const next = await authentication.answerTotp({ ...challenge, code }, { signal });
    if (next.errorMsg === undefined) answer = next;
    else if (tries === secondFactorTries - 1) throw new CommandError(next.errorMsg);
    else output.note(next.errorMsg);
  }
  if (answer.challengePasswordChange !== undefined) {
    const newPassword = await askSecret(invocation, 'Choose a new password', 'Run it in a terminal.');
    const again = await askSecret(invocation, 'The same once more', 'Run it in a terminal.');
    if (newPassword !== again) throw new CommandError('The two are not the same.');
    answer = await authentication.answerPasswordChange(
      { ...answer.challengePasswordChange, newPassword },
      { signal },
    );
  }
  if (answer.result === undefined) throw new CommandError(answer.errorMsg ?? 'Signing in did not work.');
  return { accessToken: answer.result.accessToken, refreshToken: answer.result.refreshToken };
}

async function signUp(invocation: Invocation): Promise<void> {
  const { options, output, signal } = invocation;
  const { authentication } = await visitorOf(invocation);
  const username = options.text('username') ?? (await askText(invocation, 'Username', 'Give --username.'));
  const email = options.text('email') ?? (await askText(invocation, 'Email', 'Give --email.'));
  const password = options.flag('password-stdin')
    ? (await readInput(invocation)).replace(/\r?\n$/, '')
    : await askSecret(invocation, 'Password', 'Pipe it in and give --password-stdin.');
  const form = { username, email, password, tosAgreed: true, marketingAgreed: false };
  const answer = await authentication.signUp(form, { signal });
  if (answer.errorMsg !== undefined) throw new CommandError(answer.errorMsg);
  output.done(
    { username, confirmed: false },
    'A code was mailed. Without a mail server it is in outbox.jsonl of the data directory.',
  );
  if (process.stdin.isTTY !== true) {
    output.note(`Confirm with \`millrace confirm ${username} <code>\`.`);
    return;
  }
  await confirmCode(invocation, username, await askText(invocation, 'Code', 'Run `millrace confirm`.'));
}

async function confirmCode(invocation: Invocation, username: string, code: string): Promise<void> {
  const { authentication } = await visitorOf(invocation);
  const answer = await authentication.confirm({ username, code }, { signal: invocation.signal });
  if (answer.confirmed !== true) throw new CommandError(answer.errorMsg ?? 'The code was not accepted.');
  invocation.output.done(
    { username, confirmed: true },
    `The account is confirmed. Sign in with \`millrace login --username ${username}\`.`,
  );
}

export const accountCommands: readonly Command[] = [
  {
    path: ['signup'],
    summary: 'Make an account',
    options: {
      username: { value: 'name', summary: 'the username' },
      email: { value: 'address', summary: 'where the code is mailed to' },
      'password-stdin': { summary: 'read the password from stdin' },
    },
    examples: [
      'millrace signup',
      'echo "$PASSWORD" | millrace signup --username ada --email ada@example.com --password-stdin',
    ],
    run: signUp,
  },
  {
    path: ['confirm'],
    summary: 'Confirm an account with the mailed code',
    arguments: [
      { name: 'username', summary: 'the username' },
      { name: 'code', summary: 'the six digits' },
    ],
    examples: ['millrace confirm ada 123456'],
    run: (invocation) =>
      confirmCode(invocation, invocation.arguments.text('username'), invocation.arguments.text('code')),
  },
  {
    path: ['login'],
    summary: 'Sign in and keep the session, or an API key, in the profile',
    description:
      'Asks for what is needed: password, one-time code, a new password after an invitation.\nWith --api-key and --organization the key is checked and kept instead.',
    options: {
      username: { value: 'name', summary: 'username or email' },
      'password-stdin': { summary: 'read the password from stdin' },
      code: { value: 'digits', summary: 'the one-time code, instead of being asked' },
    },
    examples: [
      'millrace login',
      'millrace login --endpoint https://data.example.com --api-key mr_... --organization acme',
    ],
    run: login,
  },
  {
    path: ['logout'],
    summary: 'End the session and forget the credential of the profile',
    examples: ['millrace logout'],
    run: async ({ profiles, output, endpoint, signal }) => {
      const { session, endpoint: kept } = await profiles.profile();
      // It is forgotten here also where the service is gone.
      await profiles.update({ session: undefined, apiKey: undefined });
      const service = new Millrace({ endpoint: kept ?? (await endpoint()), headers });
      if (session !== undefined) await service.authentication.signOut(session.refreshToken, { signal });
      output.done({ profile: await profiles.name() }, 'Signed out.');
    },
  },
  {
    path: ['whoami'],
    summary: 'Show who you are and in which organizations',
    examples: ['millrace whoami', 'millrace whoami --json'],
    run: async ({ client, output, signal }) => {
      const who = await (await client()).authentication.whoAmI({ signal });
      output.value(who, () =>
        [
          `${who.username} <${who.email}>${who.totpEnabled ? ', one-time codes on' : ''}`,
          ...who.organizations.map(({ organizationName, role }) => `  ${organizationName}  ${role}`),
        ].join('\n'),
      );
    },
  },
  {
    path: ['profile', 'list'],
    summary: 'List the profiles of the config file',
    examples: ['millrace profile list'],
    run: async ({ profiles, environment, output }) => {
      const current = await profiles.name();
      const rows = [];
      for (const name of await profiles.names()) {
        const { endpoint, organization, apiKey, session } = await new Profiles(environment, name).profile();
        const credential = apiKey !== undefined ? 'API key' : session !== undefined ? 'session' : 'none';
        rows.push({ name, current: name === current, endpoint, organization, credential });
      }
      output.list(rows, {
        profile: (row) => row.name,
        current: (row) => (row.current ? 'yes' : ''),
        endpoint: (row) => row.endpoint,
        organization: (row) => row.organization,
        credential: (row) => row.credential,
      });
    },
  },
  {
    path: ['profile', 'use'],
    summary: 'Use a profile from now on when none is named',
    arguments: [{ name: 'name', summary: 'one that `profile list` shows' }],
    examples: ['millrace profile use staging'],
    run: async ({ profiles, arguments: given, output }) => {
      await profiles.use(given.text('name'));
      output.done({ current: given.text('name') }, `Using the profile ${given.text('name')}.`);
    },
  },
];
