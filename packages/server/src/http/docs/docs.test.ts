import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  buildContract,
  type ContractDescription,
  defaultLimits,
  listOperations,
  problemCodes,
  problems,
  problemType,
} from '@millrace/contract';
import { accessInWords } from './access.ts';
import { fieldsOf } from './fields.ts';
import {
  docsContentSecurityPolicy,
  docsPage,
  errorCodeFromPath,
  errorIndexPage,
  errorPage,
} from './index.ts';

const contract = buildContract();
const options = { baseUrl: 'http://127.0.0.1:8080/', version: '0.1.0' };
const reference = docsPage(contract, options);
const pages: readonly (readonly [string, string])[] = [
  ['/docs', reference],
  ['/docs/errors', errorIndexPage()],
  ...problemCodes.map((code) => [problemType(code), errorPage(code)] as const),
];

const voidElements = new Set(['meta', 'link', 'br', 'hr', 'img', 'input']);

/** What is wrong with the nesting of a document's elements. */
function nestingFaults(document: string): readonly string[] {
  const faults: string[] = [];
  const open: string[] = [];
  const body = document.replace(/^<!doctype html>/, '').replace(/<style>[^<]*<\/style>/, '');
  // An attribute is always quoted, and a < anywhere else must be the start of a tag.
  const tags = body.replaceAll(
    /<(\/?)([a-z][a-z0-9]*)((?: [a-z-]+="[^"<>]*")*)>/g,
    (_tag, slash: string, name: string) => {
      if (slash === '') {
        if (!voidElements.has(name)) open.push(name);
      } else {
        const expected = open.pop();
        if (expected !== name) faults.push(`</${name}> closes <${expected}>`);
      }
      return '';
    },
  );
  if (/[<>]/.test(tags)) faults.push(`stray ${tags.match(/.{0,40}[<>].{0,40}/)?.[0]}`);
  if (/&(?!(?:amp|lt|gt|quot|#39);)/.test(tags)) faults.push('a bare ampersand');
  return [...faults, ...open.map((name) => `<${name}> is not closed`)];
}

test('every page is well-formed', () => {
  for (const [path, document] of pages) assert.deepEqual(nestingFaults(document), [], path);
  assert.notDeepEqual(nestingFaults('<p><b></p></b>'), []);
});

test('no page has a script, an inline style, an event handler or anything from elsewhere', () => {
  for (const [path, document] of pages) {
    assert.doesNotMatch(document, /<script|<link|<img|<iframe|\sstyle=|\son[a-z]+=|@import|url\(/, path);
    for (const [, target] of document.matchAll(/href="([^"]*)"/g)) assert.match(target ?? '', /^[/#]/, path);
  }
});

test('the policy allows exactly the style sheet of the pages', () => {
  for (const [path, document] of pages) {
    const css = document.match(/<style>([^<]*)<\/style>/)?.[1] ?? '';
    const hash = createHash('sha256').update(css).digest('base64');
    assert.ok(docsContentSecurityPolicy.includes(`style-src 'sha256-${hash}'`), path);
  }
  assert.match(docsContentSecurityPolicy, /^default-src 'none'; /);
  assert.doesNotMatch(docsContentSecurityPolicy, /unsafe/);
});

test('markup in the contract is shown as text', () => {
  const evil = '<script>alert(1)</script>';
  const altered: ContractDescription = {
    ...contract,
    operations: {
      ping: {
        ...contract.operations.ping,
        summary: evil,
        description: `${evil} \`${evil}\``,
        example: { response: evil },
      },
    },
  };
  const document = docsPage(altered, { baseUrl: `http://${evil}`, version: evil });
  assert.ok(!document.includes('<script'));
  assert.ok(document.includes('&lt;script&gt;alert(1)&lt;/script&gt;'));
  assert.deepEqual(nestingFaults(document), []);
});

test('every operation is described under its own anchor, with its path, callers and an example', () => {
  for (const operation of listOperations(contract)) {
    const start = reference.indexOf(`<article class="operation" id="${operation.id}"`);
    assert.notEqual(start, -1, operation.id);
    const section = reference.slice(start, reference.indexOf('</article>', start));
    assert.ok(section.includes(`>${operation.method}</span>`), operation.id);
    const path = section.match(/<span class="path">(.*?)<\/span>/)?.[1]?.replaceAll(/<\/?b>/g, '');
    assert.equal(path, operation.path);
    assert.match(section, /Who may call:/);
    assert.match(section, /<figcaption>Example<\/figcaption><pre><code>curl /);
    for (const code of operation.problems ?? [])
      assert.ok(section.includes(`href="${problemType(code)}"`), code);
  }
});

test('every link within the page leads to something, and no id is used twice', () => {
  for (const [path, document] of pages) {
    const ids = [...document.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length, path);
    for (const [, target] of document.matchAll(/href="#([^"]*)"/g))
      assert.ok(ids.includes(target), `${path} #${target}`);
    for (const [, target] of document.matchAll(/href="\/docs#([^"]*)"/g)) {
      assert.ok(reference.includes(` id="${target}"`), `${path} /docs#${target}`);
    }
  }
});

test('headings go down one level at a time', () => {
  for (const [path, document] of pages) {
    const levels = [...document.matchAll(/<h([1-6])/g)].map(([, level]) => Number(level));
    assert.equal(levels.filter((level) => level === 1).length, 1, path);
    levels.reduce((before, level) => {
      assert.ok(level <= before + 1, path);
      return level;
    }, 0);
  }
});

test('the limits shown are those in force, with their settings', () => {
  const strict = docsPage(buildContract({ ...defaultLimits, batchMessages: 4321 }), options);
  assert.match(strict, /MILLRACE_LIMIT_BATCH_MESSAGES<\/code><\/span><\/th><td class="amount">4,321</);
  assert.match(
    reference,
    /MILLRACE_LIMIT_CODE_UNZIPPED_BYTES<\/code><\/span><\/th><td class="amount">1 GiB</,
  );
});

test('every code has a page that its problem type leads to, and is on the index', () => {
  const index = errorIndexPage();
  for (const code of problemCodes) {
    assert.equal(errorCodeFromPath(problemType(code).replace('/docs/errors/', '')), code);
    assert.ok(index.includes(`<a href="${problemType(code)}">${code}</a>`), code);
    const document = errorPage(code);
    assert.ok(document.includes(`<code>${code}</code>, HTTP status ${problems[code].status}`), code);
  }
});

test('a path that names no code has no page', () => {
  for (const segment of [
    '',
    'nope',
    'NOT_FOUND',
    'not_found',
    'Not-Found',
    '-',
    'constructor',
    'not-found/',
    '__proto__',
  ]) {
    assert.equal(errorCodeFromPath(segment), undefined, segment);
  }
});

test('a page says which operations give its problem', () => {
  assert.ok(errorPage('LAST_ADMIN').includes('<a href="/docs#setMemberRole">setMemberRole</a>'));
  assert.ok(!errorPage('LAST_ADMIN').includes('#getTopics'));
  assert.ok(errorPage('INTERNAL').includes('Any operation may give it.'));
});

test('who may call is said in words', () => {
  assert.equal(accessInWords(contract.operations.ping.access), 'Anybody. No credential is needed.');
  assert.equal(
    accessInWords(contract.operations.message.access),
    "A member of the organization with the role MEMBER or higher, with an access token or an API key. A key with a `queueWhitelist` may call it for the topics on its list. A task's own key may call it for the topics the task outputs to.",
  );
  assert.equal(
    accessInWords(contract.operations.removeMember.access),
    'An ADMIN of the organization, with an access token. API keys are not accepted.',
  );
});

test('fields are listed below their parents with what they must keep to', () => {
  const fields = fieldsOf(contract.types.Topic).map(({ name, depth, type, constraints }) => [
    name,
    depth,
    type,
    constraints.join(),
  ]);
  assert.deepEqual(fields.slice(0, 4), [
    ['batch', 0, 'object', ''],
    ['retentionInDays', 1, 'integer', '1 to 3,660,`90` unless given'],
    ['streams', 0, 'array of object', 'at most 100 items'],
    ['name', 1, 'string', ''],
  ]);
  assert.deepEqual(
    fieldsOf(contract.types.RateLimitLevel).map(({ name, constraints }) => [name, constraints[0]]),
    [['', 'one of `DEFAULT`, `ONE`, `TEN`, `HUNDRED`']],
  );
  assert.deepEqual(
    fieldsOf(contract.types.Topics)
      .filter(({ name }) => name === 'topics')
      .map(({ type }) => type),
    ['map of object'],
  );
});
