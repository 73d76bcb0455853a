import { type LimitName, type Limits, limitSetting } from '@millrace/contract';
import { type Html, html } from './html.ts';

const meanings: Readonly<Record<LimitName, string>> = {
  requestBytes: 'The JSON body of an operation that names no limit of its own',
  apiKeys: 'API keys of one organization',
  messageBytes: 'One published message',
  batchBytes: 'One batch of messages, unzipped',
  batchMessages: 'Messages in one batch',
  codeBytes: 'A code upload, zipped',
  codeUnzippedBytes: 'A code upload, unzipped',
  codeEntries: 'Files and folders in a code upload',
  invokeBytes: 'An event for invoke, a request to a task endpoint, and its answer',
  schemaBytes: 'A topic schema',
  stateKeyParts: 'Parts of a state key',
  stateKeyBytes: 'A merged state key',
  stateAttributesBytes: 'The attributes of a state entry, as JSON',
  statePage: 'State entries in one page',
  sqlBytes: 'A SQL query',
  filesPage: 'Topic files in one page',
  resultsPage: 'Rows in one page of query results',
  historyPage: 'Queries in one page of the history',
  logsPage: 'Lines of task log in one page',
  deadLettersPage: 'Dead letters in one page',
};

const counted = new Intl.NumberFormat('en');

/** A number of bytes in the largest unit that keeps it whole. */
export function bytesInWords(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB'];
  let amount = bytes;
  let unit = 0;
  while (unit < units.length - 1 && amount >= 1024 && amount % 1024 === 0) {
    amount /= 1024;
    unit += 1;
  }
  return `${counted.format(amount)} ${units[unit]}`;
}

function isLimitName(name: string): name is LimitName {
  return Object.hasOwn(meanings, name);
}

/** The limits in force on this server, each with the setting that changes it. */
export function limitsTable(limits: Limits): Html {
  const rows = Object.keys(meanings)
    .filter(isLimitName)
    .map((name) => {
      const value = name.endsWith('Bytes') ? bytesInWords(limits[name]) : counted.format(limits[name]);
      return html`<tr><th scope="row">${meanings[name]}<span class="setting"><code>${limitSetting(name)}</code></span></th><td class="amount">${value}</td></tr>\n`;
    });
  return html`<table>
<thead><tr><th scope="col">Limit and its setting</th><th scope="col">At most</th></tr></thead>
<tbody>
${rows}</tbody>
</table>`;
}
