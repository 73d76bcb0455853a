import {
  type ContractDescription,
  groupDescriptions,
  type OperationGroup,
  operationGroups,
} from '@millrace/contract';
import { type Html, html } from './html.ts';
import { guideChapters, introduction } from './introduction.ts';
import { operationSection, type SectionContext } from './operation-section.ts';
import { page } from './page.ts';

function groupAnchor(group: OperationGroup): string {
  return `group-${group.toLowerCase().replaceAll(' ', '-')}`;
}

function contents(contract: ContractDescription): Html {
  const operations = Object.values(contract.operations);
  const groups = operationGroups.map((group) => {
    const links = operations
      .filter((operation) => operation.group === group)
      .map(({ id, summary }) => html`<li><a href="#${id}">${summary}</a></li>\n`);
    return html`<a class="group" href="#${groupAnchor(group)}">${group}</a>
<ul>
${links}</ul>
`;
  });
  const chapters = guideChapters.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>\n`);
  return html`<a class="group" href="#main">Guide</a>
<ul>
${chapters}</ul>
${groups}`;
}

/** A details element cannot be open on a wide screen and closed on a phone, so each has its own copy. */
function sidebar(contract: ContractDescription, version: string): Html {
  const links = contents(contract);
  return html`<header class="sidebar">
<a class="brand" href="/docs">Millrace</a><span class="version">${version}</span>
<details class="narrow-only"><summary>Contents</summary><nav class="contents" aria-label="Contents">
${links}</nav></details>
<nav class="contents wide-only" aria-label="Contents">
${links}</nav>
</header>`;
}

function groupSection(group: OperationGroup, context: SectionContext): Html {
  const operations = Object.values(context.contract.operations).filter(
    (operation) => operation.group === group,
  );
  const anchor = groupAnchor(group);
  return html`<section id="${anchor}" aria-labelledby="${anchor}-title">
<h2 id="${anchor}-title">${group}</h2>
<p class="about">${groupDescriptions[group]}</p>
${operations.map((operation) => operationSection(operation, context))}
</section>
`;
}

/** The reference of the whole interface as one page that needs no script. */
export function docsPage(
  contract: ContractDescription,
  options: { readonly baseUrl: string; readonly version: string },
): string {
  const context: SectionContext = {
    contract,
    baseUrl: options.baseUrl.replace(/\/+$/, ''),
    links: new Set(Object.values(contract.operations).map(({ id }) => id)),
  };
  return page(
    'Millrace API reference',
    'How to call every operation of this Millrace server.',
    html`<div class="layout">
${sidebar(contract, options.version)}
<main id="main">
<h1>API reference</h1>
<p class="lead">Publish events over HTTP, run your own code on them, keep keyed state, and query everything with SQL. This server is at <code>${context.baseUrl}</code>.</p>
${introduction(context)}
${operationGroups.map((group) => groupSection(group, context))}
<footer>Millrace ${options.version}. Made from the same contract that the server enforces.</footer>
</main>
</div>`,
  );
}
