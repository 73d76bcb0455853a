import type { Command } from '../command.ts';
import { agreeTo } from '../prompt.ts';
import { wordOf } from '../word.ts';

const levels = ['DEFAULT', 'ONE', 'TEN', 'HUNDRED'] as const;
const roles = ['VIEWER', 'MEMBER', 'ADMIN'] as const;

export const organizationCommands: readonly Command[] = [
  {
    path: ['org', 'create'],
    summary: 'Make an organization and use it from now on',
    arguments: [{ name: 'name', summary: 'letters, digits, - and _' }],
    examples: ['millrace org create acme'],
    run: async ({ client, arguments: given, output, profiles, signal }) => {
      const name = given.text('name');
      await (await client()).organizations.create(name, { signal });
      await profiles.update({ organization: name });
      output.done({ organizationName: name }, `Made the organization ${name}, which is used from now on.`);
    },
  },
  {
    path: ['org', 'list'],
    summary: 'List your organizations',
    examples: ['millrace org list'],
    run: async ({ client, output, signal }) => {
      const { organizations } = await (await client()).authentication.whoAmI({ signal });
      output.list(organizations, {
        organization: (entry) => entry.organizationName,
        role: (entry) => entry.role,
      });
    },
  },
  {
    path: ['org', 'use'],
    summary: 'Use an organization from now on',
    arguments: [{ name: 'name', summary: 'one of yours' }],
    examples: ['millrace org use acme'],
    run: async ({ client, arguments: given, output, profiles, signal }) => {
      const organization = given.text('name');
      // A name that is not one of ours is refused here rather than at every later call.
      await (await client()).withOrganization(organization).organizations.rateLimit({ signal });
      await profiles.update({ organization });
      output.done({ organizationName: organization }, `Using ${organization}.`);
    },
  },
  {
    path: ['org', 'invite'],
    summary: 'Add somebody to the organization',
    arguments: [{ name: 'email', summary: 'their email' }],
    options: { username: { value: 'name', summary: 'make an account of this name if they have none' } },
    examples: [
      'millrace org invite grace@example.com',
      'millrace org invite grace@example.com --username grace',
    ],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const username = options.text('username');
      await (await client()).organizations.invite(given.text('email'), {
        signal,
        ...(username === undefined ? {} : { username }),
      });
      output.done({ invited: given.text('email') }, `Invited ${given.text('email')}.`);
    },
  },
  {
    path: ['org', 'members'],
    summary: 'List the members of the organization',
    examples: ['millrace org members'],
    run: async ({ client, output, signal }) => {
      output.list(await (await client()).organizations.members({ signal }), {
        username: (member) => member.username,
        email: (member) => member.email,
        role: (member) => member.role,
        joined: (member) => member.joinedAt,
      });
    },
  },
  {
    path: ['org', 'role'],
    summary: 'Give a member another role',
    arguments: [
      { name: 'username', summary: 'the member' },
      { name: 'role', summary: 'VIEWER, MEMBER or ADMIN' },
    ],
    examples: ['millrace org role grace ADMIN'],
    run: async ({ client, arguments: given, output, signal }) => {
      const role = wordOf(roles, given.text('role'));
      await (await client()).organizations.setRole(given.text('username'), role, { signal });
      output.done({ username: given.text('username'), role }, `${given.text('username')} is ${role} now.`);
    },
  },
  {
    path: ['org', 'remove'],
    summary: 'Take a member out of the organization',
    arguments: [{ name: 'username', summary: 'the member' }],
    options: { yes: { short: 'y', summary: 'do not ask' } },
    examples: ['millrace org remove grace --yes'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      await agreeTo(
        { signal },
        `Take ${given.text('username')} out of the organization?`,
        options.flag('yes'),
      );
      await (await client()).organizations.removeMember(given.text('username'), { signal });
      output.done({ removed: given.text('username') }, `Removed ${given.text('username')}.`);
    },
  },
  {
    path: ['org', 'rate-limit'],
    summary: 'Show or set how many requests a second the organization may make',
    arguments: [{ name: 'level', summary: 'DEFAULT, ONE, TEN or HUNDRED', optional: true }],
    examples: ['millrace org rate-limit', 'millrace org rate-limit HUNDRED'],
    run: async ({ client, arguments: given, output, signal }) => {
      const { organizations } = await client();
      const typed = given.optional('level');
      if (typed !== undefined) await organizations.setRateLimit(wordOf(levels, typed), { signal });
      const level = await organizations.rateLimit({ signal });
      output.value({ level }, () => level);
    },
  },
  {
    path: ['key', 'create'],
    summary: 'Make an API key; its secret is printed this once',
    arguments: [{ name: 'description', summary: 'what it is for' }],
    options: {
      topic: { value: 'name', many: true, summary: 'may only publish to this topic; may be repeated' },
      'expires-in-days': { value: 'days', summary: 'stops working after so many days' },
    },
    examples: [
      'millrace key create "the web shop" --topic clicks',
      'export MILLRACE_API_KEY=$(millrace key create ci)',
    ],
    run: async ({ client, arguments: given, options, output, signal }) => {
      const topics = options.many('topic');
      const days = options.number('expires-in-days', { least: 1, most: 36_500 });
      const key = await (await client()).keys.create(
        {
          description: given.text('description'),
          ...(topics.length === 0 ? {} : { queueWhitelist: [...topics] }),
          ...(days === undefined ? {} : { expiresAt: Date.now() + days * 86_400_000 }),
        },
        { signal },
      );
      output.note(`Key ${key.id}. Keep the secret: it is not shown again.`);
      output.value(key, () => key.secret);
    },
  },
  {
    path: ['key', 'list'],
    summary: 'List API keys',
    examples: ['millrace key list'],
    run: async ({ client, output, signal }) => {
      output.list(await (await client()).keys.list({ signal }), {
        id: (key) => key.id,
        description: (key) => key.description,
        owner: (key) => key.ownerUsername,
        topics: (key) => key.queueWhitelist?.join(', ') ?? 'all',
        expires: (key) => (key.expiresAt === undefined ? 'never' : new Date(key.expiresAt).toISOString()),
        'last used': (key) => key.lastUsedAt ?? 'never',
      });
    },
  },
  {
    path: ['key', 'revoke'],
    summary: 'Revoke an API key',
    arguments: [{ name: 'id', summary: 'its id, from `key list`' }],
    options: { yes: { short: 'y', summary: 'do not ask' } },
    examples: ['millrace key revoke k4Jm2nXv5KpLw3RtYb7Zc1 --yes'],
    run: async ({ client, arguments: given, options, output, signal }) => {
      await agreeTo(
        { signal },
        'Revoke the key? Programs that use it stop working at once.',
        options.flag('yes'),
      );
      await (await client()).keys.revoke(given.text('id'), { signal });
      output.done({ revoked: given.text('id') }, 'Revoked.');
    },
  },
];
