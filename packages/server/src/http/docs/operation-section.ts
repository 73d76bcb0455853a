import {
  applicableProblems,
  type ContractDescription,
  type Operation,
  problems,
  problemType,
} from '@millrace/contract';
import { accessInWords } from './access.ts';
import { curlExample, readableJson } from './curl.ts';
import { type Field, fieldsOf, typeInWords } from './fields.ts';
import { type Html, html } from './html.ts';
import { bytesInWords } from './limits.ts';
import { prose, sample } from './page.ts';

/** What a section needs to know of the rest of the page. */
export interface SectionContext {
  readonly contract: ContractDescription;
  readonly baseUrl: string;
  /** The ids of all operations, which prose may link to. */
  readonly links: ReadonlySet<string>;
  /** Operations that this version does not have yet. */
}

export function methodBadge(method: string): Html {
  return html`<span class="method method-${method.toLowerCase()}">${method}</span>`;
}

function pathWithParameters(path: string): Html {
  const pieces = path
    .split(/(\{[^}]*\}|\*)/)
    .map((piece, index) => (index % 2 === 1 ? html`<b>${piece}</b>` : piece));
  return html`<span class="path">${pieces}</span>`;
}

/** A caller must know what to send, and what may be missing from an answer. */
type Side = 'request' | 'answer';

function presenceMark(field: Field, side: Side): Html | undefined {
  if (side === 'request' && field.required) return html` <span class="required">required</span>`;
  if (side === 'answer' && !field.required) return html` <span class="optional">optional</span>`;
  return undefined;
}

function fieldRow(field: Field, side: Side, context: SectionContext): Html {
  const name = field.name === '' ? html`the body` : html`<code>${field.name}</code>`;
  const constraints =
    field.constraints.length === 0
      ? undefined
      : html`<span class="constraint">${prose(field.constraints.join('; '))}</span>`;
  return html`<tr><th scope="row" class="deep-${Math.min(field.depth, 4)}">${name}${presenceMark(field, side)}<span class="type">${field.type}</span></th><td>${prose(field.description ?? '', context.links)}${constraints}</td></tr>\n`;
}

function fieldTable(fields: readonly Field[], label: string, side: Side, context: SectionContext): Html {
  return html`<table class="fields" aria-label="${label}">
<thead><tr><th scope="col">${label}</th><th scope="col">Meaning</th></tr></thead>
<tbody>
${fields.map((field) => fieldRow(field, side, context))}</tbody>
</table>`;
}

function parameterTables(operation: Operation, context: SectionContext): Html | undefined {
  const { path, query, headers } = operation.parameters ?? {};
  const headerFields = fieldsOf(headers ?? { properties: {} }).map((field) => {
    const title: unknown = Reflect.get(headers?.properties[field.name] ?? {}, 'title');
    return typeof title === 'string' ? { ...field, name: title } : field;
  });
  const tables = [
    { label: 'In the path', fields: fieldsOf(path ?? { properties: {} }) },
    { label: 'In the query', fields: fieldsOf(query ?? { properties: {} }) },
    { label: 'In the headers', fields: headerFields },
  ].filter(({ fields }) => fields.length > 0);
  if (tables.length === 0) return undefined;
  return html`<h4>Parameters</h4>
${tables.map(({ label, fields }) => fieldTable(fields, label, 'request', context))}`;
}

/** The fields of an answer, folded away when they are many. */
function answerTable(schema: unknown, name: string | undefined, context: SectionContext): Html {
  const fields = fieldsOf(schema);
  const table = fieldTable(fields, 'Field', 'answer', context);
  if (fields.length <= 12) return table;
  return html`<details class="more"><summary>${name ?? typeInWords(schema)}: ${fields.length} fields</summary>
${table}
</details>`;
}

function typeName(schema: unknown, context: SectionContext): string | undefined {
  return Object.entries(context.contract.types).find(([, type]) => type === schema)?.[0];
}

function bodySection(operation: Operation, context: SectionContext): Html | undefined {
  const { body } = operation;
  if (body === undefined) return undefined;
  const limit = bytesInWords(operation.limits?.bodyBytes ?? context.contract.limits.requestBytes);
  if ('schema' in body) {
    const name = typeName(body.schema, context);
    return html`<h4>Body</h4>
<p><code>application/json</code>${name === undefined ? '' : html`, ${name}`}, at most ${limit}.</p>
${fieldTable(fieldsOf(body.schema), 'Field', 'request', context)}`;
  }
  const mediaTypes = body.mediaTypes.includes('any')
    ? html`Any media type`
    : body.mediaTypes.map((mediaType, index) => html`${index === 0 ? '' : ' or '}<code>${mediaType}</code>`);
  return html`<h4>Body</h4>
<p>${prose(body.description, context.links)} ${mediaTypes}, at most ${limit}.</p>`;
}

function responseSection(operation: Operation, context: SectionContext): Html {
  const responses = Object.entries(operation.responses).map(
    ([status, { description, schema, mediaTypes }]) => {
      const name = typeName(schema, context);
      const kind =
        schema === undefined
          ? mediaTypes === undefined
            ? html` No body.`
            : html` ${mediaTypes.map((mediaType, index) => html`${index === 0 ? '' : ' or '}<code>${mediaType}</code>`)}.`
          : html` ${name === undefined ? '' : html`${name}.`}`;
      return html`<p><strong>${status}</strong> ${prose(description, context.links)}${kind}</p>
${schema === undefined ? undefined : answerTable(schema, name, context)}`;
    },
  );
  return html`<h4>Answer</h4>
${responses}`;
}

function problemSection(operation: Operation): Html {
  const codes = applicableProblems(operation);
  const statuses = [...new Set(codes.map((code) => problems[code].status))];
  const rows = statuses.map((status) => {
    const links = codes
      .filter((code) => problems[code].status === status)
      .map((code, index) => html`${index === 0 ? '' : ', '}<a href="${problemType(code)}">${code}</a>`);
    return html`<li><span class="status">${status}</span> ${links}</li>\n`;
  });
  return html`<h4>Problems</h4>
<ul class="problems">
${rows}</ul>`;
}

function exampleAnswer(operation: Operation): Html {
  const [status, answer] = Object.entries(operation.responses).find(
    ([, { schema }]) => schema !== undefined,
  ) ??
    Object.entries(operation.responses)[0] ?? ['200', undefined];
  const caption = `Answer ${status}`;
  if (operation.example.response !== undefined)
    return sample(caption, readableJson(operation.example.response));
  const mediaTypes = answer?.mediaTypes;
  return sample(caption, mediaTypes === undefined ? '(no body)' : `(${mediaTypes.join(' or ')})`);
}

/** Everything about one operation. */
export function operationSection(operation: Operation, context: SectionContext): Html {
  return html`<article class="operation" id="${operation.id}" aria-labelledby="${operation.id}-title">
<header>
<h3 id="${operation.id}-title"><a href="#${operation.id}">${operation.summary}</a> <code class="id">${operation.id}</code></h3>
<div class="route">${methodBadge(operation.method)} ${pathWithParameters(operation.path)}</div>
</header>
<div class="columns">
<div>
${operation.description === undefined ? undefined : html`<p>${prose(operation.description, context.links)}</p>`}
<p class="who"><strong>Who may call:</strong> ${prose(accessInWords(operation.access))}</p>
${parameterTables(operation, context)}
${bodySection(operation, context)}
${responseSection(operation, context)}
${problemSection(operation)}
</div>
<div class="samples">
${sample('Example', curlExample(operation, context.baseUrl))}
${exampleAnswer(operation)}
</div>
</div>
</article>
`;
}
