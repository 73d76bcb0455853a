import {
  applicableProblems,
  buildContract,
  isProblemCode,
  listOperations,
  type ProblemCode,
  problemCodes,
  problemExample,
  problems,
  problemType,
} from '@millrace/contract';
import { type Html, html } from './html.ts';
import { page, prose, sample } from './page.ts';

/** Which problems an operation may give does not depend on the limits in force, so the defaults will do. */
const operations = listOperations(buildContract());
const links: ReadonlySet<string> = new Set(operations.map(({ id }) => id));

/** The code that a path segment below `/docs/errors/` names, as `problemType` writes it. */
export function errorCodeFromPath(segment: string): ProblemCode | undefined {
  if (!/^[a-z]+(-[a-z]+)*$/.test(segment)) return undefined;
  const code = segment.toUpperCase().replaceAll('-', '_');
  return isProblemCode(code) ? code : undefined;
}

function whereItHappens(code: ProblemCode): Html {
  const giving = operations.filter((operation) => applicableProblems(operation).includes(code));
  if (giving.length === operations.length) return html`<p>Any operation may give it.</p>`;
  if (giving.length === 0) return html`<p>It is not particular to any one operation.</p>`;
  const items = giving.map(({ id, summary }) => html`<li><a href="/docs#${id}">${id}</a>: ${summary}</li>\n`);
  return html`<ul>
${items}</ul>`;
}

function errorDocument(title: string, description: string, crumbs: Html, content: Html): string {
  return page(
    title,
    description,
    html`<div class="narrow">
<main id="main">
<nav class="crumbs" aria-label="Where you are">${crumbs}</nav>
${content}
</main>
</div>`,
  );
}

/** The page that the `type` of a problem leads to. */
export function errorPage(code: ProblemCode): string {
  const { status, title, explanation } = problems[code];
  return errorDocument(
    `${code}: ${title}`,
    title,
    html`<a href="/docs">Reference</a> / <a href="/docs/errors">Errors</a> / ${code}`,
    html`<h1>${title}</h1>
<p class="lead"><code>${code}</code>, HTTP status ${status}</p>
<p>${prose(explanation, links, '/docs')}</p>
<h2>What it looks like</h2>
<p>The detail says what happened in your case.</p>
${sample(`${status} application/problem+json`, JSON.stringify(problemExample(code), undefined, 2))}
<section>
<h2>Where it happens</h2>
${whereItHappens(code)}
</section>`,
  );
}

/** All codes by status. */
export function errorIndexPage(): string {
  const rows = problemCodes.map(
    (code) =>
      html`<tr><td>${problems[code].status}</td><th scope="row"><a href="${problemType(code)}">${code}</a></th><td>${problems[code].title}</td></tr>\n`,
  );
  return errorDocument(
    'Millrace error codes',
    'Every error code of the interface and what it means.',
    html`<a href="/docs">Reference</a> / Errors`,
    html`<h1>Error codes</h1>
<p class="lead">Every error is a problem document with one of these codes. A code is stable: programs may branch on it.</p>
<table>
<thead><tr><th scope="col">Status</th><th scope="col">Code</th><th scope="col">Meaning</th></tr></thead>
<tbody>
${rows}</tbody>
</table>`,
  );
}
