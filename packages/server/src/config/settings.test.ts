import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { defaultLimits, type LimitName, limitSetting } from '@millrace/contract';
import { describeSettings, readSettings, type Settings } from './settings.ts';

function accepted(environment: Record<string, string | undefined>): Settings {
  const read = readSettings(environment);
  assert.ok('settings' in read, `accepted: ${'refusals' in read ? read.refusals.join(' ') : ''}`);
  return read.settings;
}

function refused(environment: Record<string, string | undefined>): string[] {
  const read = readSettings(environment);
  assert.ok('refusals' in read, `refused: ${JSON.stringify(environment)}`);
  for (const sentence of read.refusals) assert.match(sentence, /^MILLRACE_[A-Z_]* .+[.?]$/);
  return read.refusals;
}

/** What one setting takes and refuses. A number setting is given by its least and its greatest value. */
interface Example {
  readonly key: keyof Settings;
  readonly name: string;
  readonly fallback: unknown;
  readonly taken: readonly (readonly [given: string, value: unknown])[];
  readonly refused: readonly string[];
}

function numberExample(
  key: keyof Settings,
  name: string,
  fallback: number,
  least: number,
  most: number,
): Example {
  return {
    key,
    name,
    fallback,
    taken: [
      [String(least), least],
      [String(most), most],
    ],
    refused: [
      '',
      ' ',
      String(least - 1),
      String(most + 1),
      '1.5',
      '1e3',
      '0x10',
      '+1',
      ' 1',
      '1s',
      'NaN',
      '٣',
    ],
  };
}

const secret = 'hunter2';
const limitNames = Object.keys(defaultLimits).filter((name): name is LimitName => name in defaultLimits);

const examples: readonly Example[] = [
  {
    key: 'host',
    name: 'MILLRACE_HOST',
    fallback: '127.0.0.1',
    taken: [
      ['0.0.0.0', '0.0.0.0'],
      ['::1', '::1'],
    ],
    refused: [''],
  },
  numberExample('port', 'MILLRACE_PORT', 8080, 0, 65_535),
  {
    key: 'publicUrl',
    name: 'MILLRACE_PUBLIC_URL',
    fallback: undefined,
    taken: [
      ['https://data.example.com', 'https://data.example.com'],
      ['https://data.example.com/', 'https://data.example.com'],
      ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ],
    refused: ['', 'data.example.com', 'ftp://data.example.com', 'https://', 'javascript:alert(1)'],
  },
  {
    key: 'dataDirectory',
    name: 'MILLRACE_DATA_DIR',
    fallback: './data',
    taken: [['/var/lib/millrace', '/var/lib/millrace']],
    refused: [''],
  },
  {
    key: 'logLevel',
    name: 'MILLRACE_LOG_LEVEL',
    fallback: 'info',
    taken: ['debug', 'info', 'warn', 'error', 'silent'].map((level) => [level, level] as const),
    refused: ['', 'DEBUG', 'trace', '20'],
  },
  {
    key: 'signUp',
    name: 'MILLRACE_SIGN_UP',
    fallback: 'open',
    taken: [
      ['open', 'open'],
      ['invite', 'invite'],
    ],
    refused: ['', 'closed', 'true'],
  },
  {
    key: 'databaseUrl',
    name: 'MILLRACE_DATABASE_URL',
    fallback: undefined,
    taken: [
      [`postgres://me:${secret}@db.example/millrace`, `postgres://me:${secret}@db.example/millrace`],
      ['postgresql://db.example/millrace', 'postgresql://db.example/millrace'],
      ['sqlite:other.db', 'sqlite:other.db'],
    ],
    refused: [
      '',
      `mysql://me:${secret}@db.example`,
      `me:${secret}@db.example`,
      `postgres://me:${secret}@:x/`,
    ],
  },
  {
    key: 'objectsUrl',
    name: 'MILLRACE_OBJECTS_URL',
    fallback: undefined,
    taken: [
      ['file:///var/lib/objects', 'file:///var/lib/objects'],
      ['s3://bucket/prefix?region=eu-west-1', 's3://bucket/prefix?region=eu-west-1'],
    ],
    refused: ['', `https://key:${secret}@s3.example/bucket`, '/var/lib/objects'],
  },
  {
    key: 'mailUrl',
    name: 'MILLRACE_MAIL_URL',
    fallback: undefined,
    taken: [
      [`smtp://me:${secret}@mail.example:587`, `smtp://me:${secret}@mail.example:587`],
      ['smtps://mail.example', 'smtps://mail.example'],
    ],
    refused: ['', `https://me:${secret}@mail.example`, `me:${secret}@mail.example`],
  },
  {
    key: 'mailFrom',
    name: 'MILLRACE_MAIL_FROM',
    fallback: 'Millrace <millrace@localhost>',
    taken: [['Data <data@example.com>', 'Data <data@example.com>']],
    refused: [''],
  },
  numberExample('rateLimitDefault', 'MILLRACE_RATE_LIMIT_DEFAULT', 10_000, 1, 1_000_000),
  numberExample('accessTokenSeconds', 'MILLRACE_ACCESS_TOKEN_SECONDS', 900, 1, 86_400),
  numberExample('sessionDays', 'MILLRACE_SESSION_DAYS', 30, 1, 365),
  numberExample('signingKeyDays', 'MILLRACE_SIGNING_KEY_DAYS', 30, 1, 365),
  {
    key: 'corsOrigins',
    name: 'MILLRACE_CORS_ORIGINS',
    fallback: ['*'],
    taken: [
      ['*', ['*']],
      ['', []],
      ['https://a.example', ['https://a.example']],
      [' https://a.example , http://localhost:5173 ', ['https://a.example', 'http://localhost:5173']],
    ],
    refused: ['a.example', 'https://a.example/', 'https://a.example/app', 'https://*.example', 'null'],
  },
  {
    key: 'trustProxy',
    name: 'MILLRACE_TRUST_PROXY',
    fallback: [],
    taken: [
      ['10.0.0.1', ['10.0.0.1']],
      ['10.0.0.0/8, fd00::/8', ['10.0.0.0/8', 'fd00::/8']],
    ],
    refused: ['the proxy', 'proxy.example', '10.0.0.0/99', '999.0.0.1', '10.0.0.1;10.0.0.2'],
  },
  numberExample('headersTimeoutSeconds', 'MILLRACE_HEADERS_TIMEOUT_SECONDS', 15, 1, 3600),
  numberExample('requestTimeoutSeconds', 'MILLRACE_REQUEST_TIMEOUT_SECONDS', 300, 1, 86_400),
  numberExample('keepAliveSeconds', 'MILLRACE_KEEP_ALIVE_SECONDS', 72, 1, 3600),
  numberExample('lakeFileBytes', 'MILLRACE_LAKE_FILE_BYTES', 64 * 1024 * 1024, 1024, 2 ** 30),
  numberExample('lakeFileSeconds', 'MILLRACE_LAKE_FILE_SECONDS', 60, 1, 86_400),
  numberExample('lakeUpkeepSeconds', 'MILLRACE_LAKE_UPKEEP_SECONDS', 30, 1, 86_400),
  numberExample('lakeDeletedTopicHours', 'MILLRACE_LAKE_DELETED_TOPIC_HOURS', 24, 0, 87_600),
  numberExample('lakeCacheBytes', 'MILLRACE_LAKE_CACHE_BYTES', 10 * 2 ** 30, 2 ** 20, 2 ** 49),
  numberExample('queryMemoryBytes', 'MILLRACE_QUERY_MEMORY_BYTES', 2 ** 30, 2 ** 26, 2 ** 49),
  numberExample('queryThreads', 'MILLRACE_QUERY_THREADS', 0, 0, 1024),
  numberExample('queryTemporaryBytes', 'MILLRACE_QUERY_TEMPORARY_BYTES', 4 * 2 ** 30, 0, 2 ** 49),
  numberExample('queryResultBytes', 'MILLRACE_QUERY_RESULT_BYTES', 2 ** 30, 1024, 2 ** 49),
  numberExample('querySeconds', 'MILLRACE_QUERY_SECONDS', 600, 1, 3600),
  numberExample('queryConcurrency', 'MILLRACE_QUERY_CONCURRENCY', 2, 1, 1000),
  numberExample('queryTotalConcurrency', 'MILLRACE_QUERY_TOTAL_CONCURRENCY', 4, 1, 1000),
  {
    key: 'taskSandbox',
    name: 'MILLRACE_TASK_SANDBOX',
    fallback: 'auto',
    taken: [
      ['bubblewrap', 'bubblewrap'],
      ['none', 'none'],
    ],
    refused: ['', 'docker'],
  },
  {
    key: 'taskNetwork',
    name: 'MILLRACE_TASK_NETWORK',
    fallback: 'none',
    taken: [
      ['open', 'open'],
      ['filtered', 'filtered'],
    ],
    refused: ['', 'closed'],
  },
  {
    key: 'taskNetworkAllow',
    name: 'MILLRACE_TASK_NETWORK_ALLOW',
    fallback: [],
    taken: [
      ['api.example.com', ['api.example.com']],
      ['*, *.example.com , api.example.com:8443', ['*', '*.example.com', 'api.example.com:8443']],
    ],
    refused: ['https://api.example.com', 'a b', 'api.*.com', 'example.com:0', 'example.com/path'],
  },
  numberExample('idleTimeoutSeconds', 'MILLRACE_IDLE_TIMEOUT_SECONDS', 120, 1, 86_400),
  numberExample('shutdownSeconds', 'MILLRACE_SHUTDOWN_SECONDS', 20, 0, 3600),
];

describe('a setting', () => {
  for (const { key, name, fallback, taken, refused: bad } of examples) {
    it(`${name} has its default, takes what it should and refuses the rest by name`, () => {
      assert.deepEqual(accepted({})[key], fallback);
      for (const [given, value] of taken) assert.deepEqual(accepted({ [name]: given })[key], value, given);
      for (const given of bad) {
        const [sentence = '', ...more] = refused({ [name]: given });
        assert.deepEqual(more, [], given);
        assert.ok(sentence.startsWith(`${name} `), `${sentence} names ${name}`);
        assert.ok(!sentence.includes(secret), 'a password is not repeated');
      }
    });
  }

  it('exists for each limit of the contract', () => {
    assert.deepEqual(accepted({}).limits, defaultLimits);
    for (const name of limitNames) {
      const variable = limitSetting(name);
      const { limits } = accepted({ [variable]: '7' });
      assert.deepEqual(limits, { ...defaultLimits, [name]: 7 });
      for (const bad of ['0', '-1', 'many', '1.5', '']) {
        assert.ok(refused({ [variable]: bad })[0]?.startsWith(`${variable} `), variable);
      }
    }
  });

  it('is in the examples above when it is described to people, and the other way round', () => {
    const tested = [...examples.map(({ name }) => name), ...limitNames.map(limitSetting)];
    const described = describeSettings();
    assert.deepEqual(described.map(({ name }) => name).sort(), tested.sort());
    for (const { name, description } of described) assert.match(description, /^.+\.$/, name);
  });

  it('of a public URL is a plain address, without a password, a query or a fragment', () => {
    for (const given of [
      `https://me:${secret}@data.example`,
      'https://data.example/?a=1',
      'https://a.example/#b',
    ]) {
      assert.ok(!refused({ MILLRACE_PUBLIC_URL: given })[0]?.includes(secret), given);
    }
  });
});

describe('the environment', () => {
  it('is read for names that begin with MILLRACE_ and nothing else', () => {
    const { port } = accepted({
      PATH: '/bin',
      PORT: '1',
      millrace_port: '2',
      MILLRACEPORT: '3',
      XMILLRACE_PORT: '4',
    });
    assert.equal(port, 8080);
  });

  it('may hold what belongs to the client', () => {
    accepted({
      MILLRACE_ENDPOINT: 'http://127.0.0.1:1',
      MILLRACE_API_KEY: 'mr_x',
      MILLRACE_ORGANIZATION: 'acme',
      MILLRACE_PROFILE: 'work',
    });
  });

  it('may not hold an unknown setting, and a close name is suggested', () => {
    const suggestions: [string, string | undefined][] = [
      ['MILLRACE_PRT', 'MILLRACE_PORT'],
      ['MILLRACE_POTR', 'MILLRACE_PORT'],
      ['MILLRACE_DATABASEURL', 'MILLRACE_DATABASE_URL'],
      ['MILLRACE_DATA_DIRR', 'MILLRACE_DATA_DIR'],
      ['MILLRACE_LIMIT_BATCH_BYTE', 'MILLRACE_LIMIT_BATCH_BYTES'],
      ['MILLRACE_SOMETHING_ELSE', undefined],
      ['MILLRACE_', undefined],
      ['MILLRACE_ENDPOINT_FILE', undefined],
      ['MILLRACE_FILE', undefined],
    ];
    for (const [name, close] of suggestions) {
      const [sentence = ''] = refused({ [name]: secret });
      assert.ok(sentence.startsWith(`${name} is not a setting`), sentence);
      assert.ok(!sentence.includes(secret));
      if (close !== undefined) assert.match(sentence, new RegExp(`; did you mean ${close}\\?$`));
      else if (name === 'MILLRACE_SOMETHING_ELSE') assert.match(sentence, /^[^;?]*\.$/);
    }
  });

  it('is told of everything that is wrong at once', () => {
    const sentences = refused({
      MILLRACE_PORT: 'x',
      MILLRACE_SIGN_UP: 'y',
      MILLRACE_NONE: 'z',
      MILLRACE_HOST: 'h',
    });
    assert.equal(sentences.length, 3);
  });
});

describe('a setting that is kept in a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-settings-'));
  after(() => rmSync(directory, { recursive: true, force: true }));

  function fileWith(text: string): string {
    const file = join(directory, `setting-${text.length}`);
    writeFileSync(file, text);
    return file;
  }

  it('is read without the white space around it', () => {
    const url = `postgres://me:${secret}@db.example/millrace`;
    assert.equal(accepted({ MILLRACE_DATABASE_URL_FILE: fileWith(`${url}\n`) }).databaseUrl, url);
    assert.equal(accepted({ MILLRACE_PORT_FILE: fileWith(' 9000 \r\n') }).port, 9000);
    const limits = accepted({ MILLRACE_LIMIT_REQUEST_BYTES_FILE: fileWith('4096') }).limits;
    assert.equal(limits.requestBytes, 4096);
  });

  it('is checked like any other, and what is in the file is not repeated', () => {
    const [sentence = ''] = refused({ MILLRACE_DATABASE_URL_FILE: fileWith(`mysql://me:${secret}@db`) });
    assert.match(sentence, /^MILLRACE_DATABASE_URL /);
    assert.ok(!sentence.includes(secret));
    assert.match(refused({ MILLRACE_HOST_FILE: fileWith('') })[0] ?? '', /^MILLRACE_HOST must not be empty/);
  });

  it('may not be set directly as well', () => {
    const sentences = refused({ MILLRACE_PORT: '1', MILLRACE_PORT_FILE: fileWith('2') });
    assert.deepEqual(sentences, ['MILLRACE_PORT and MILLRACE_PORT_FILE are both set; use one.']);
  });

  it('must be there', () => {
    for (const file of [join(directory, 'missing'), directory, '']) {
      const [sentence = ''] = refused({ MILLRACE_MAIL_URL_FILE: file });
      assert.match(sentence, /^MILLRACE_MAIL_URL .*MILLRACE_MAIL_URL_FILE/);
    }
  });
});
