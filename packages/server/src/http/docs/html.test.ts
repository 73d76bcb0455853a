import assert from 'node:assert/strict';
import { test } from 'node:test';
import { documentText, escapeText, html, styleElement } from './html.ts';

const text = (content: ReturnType<typeof html>) =>
  documentText(content).replace('<!doctype html>\n', '').trim();

test('text put into a template is escaped, in elements and in attributes', () => {
  assert.equal(
    text(html`<a title="${'"><script>'}">${"<b>&'"}</a>`),
    '<a title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;&#39;</a>',
  );
  assert.equal(escapeText(`<>&"'`), '&lt;&gt;&amp;&quot;&#39;');
});

test('templates nest without being escaped twice, lists are joined and nothing is left out', () => {
  assert.equal(
    text(html`<ul>${['<', '>'].map((item) => html`<li>${item}</li>`)}${undefined}</ul>`),
    '<ul><li>&lt;</li><li>&gt;</li></ul>',
  );
  assert.equal(text(html`${1}${[2, ['3']]}`), '123');
});

test('a backslash in the text of a template stays what it means', () => {
  assert.equal(text(html`a\nb${'\\n'}`), 'a\nb\\n');
});

test('a style sheet cannot end its element', () => {
  assert.throws(() => styleElement('a{}</style><script>'));
});
