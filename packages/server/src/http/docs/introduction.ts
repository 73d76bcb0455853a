import { problemExample } from '@millrace/contract';
import { type Html, html } from './html.ts';
import { limitsTable } from './limits.ts';
import type { SectionContext } from './operation-section.ts';
import { prose, sample } from './page.ts';

/** The chapters before the operations: what holds for all of them. */
export const guideChapters = [
  { id: 'guide-start', title: 'Getting started' },
  { id: 'guide-credentials', title: 'Credentials and roles' },
  { id: 'guide-errors', title: 'Errors' },
  { id: 'guide-rate-limits', title: 'Rate limits' },
  { id: 'guide-paging', title: 'Paging' },
  { id: 'guide-conventions', title: 'Conventions' },
  { id: 'guide-limits', title: 'Limits' },
] as const;

type ChapterId = (typeof guideChapters)[number]['id'];

function paragraphs(context: SectionContext, ...sentences: readonly string[]): readonly Html[] {
  return sentences.map((sentence) => html`<p>${prose(sentence, context.links)}</p>\n`);
}

function gettingStarted(context: SectionContext): Html {
  return html`${paragraphs(
    context,
    'Make an account with signUp and confirm it with the mailed code. Sign in, make an organization with createOrganization, and make an API key for your program with createApiKey. From then on one call publishes a message:',
  )}
${sample(
  'Publish a message',
  `export MILLRACE_API_KEY=mr_...
curl -X POST '${context.baseUrl}/v1/organization/acme/topic/clicks/message?messageKey=user-42' \\
  -H "Authorization: Bearer $MILLRACE_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"page":"/pricing"}'`,
)}
${paragraphs(
  context,
  'A new organization takes messages for any topic, keeps them in files that submitQuery can read with SQL, and feeds them to the stream of the same name, which a task can be deployed on.',
)}
<p>The same reference for programs is at <a href="/openapi.json">/openapi.json</a>.</p>`;
}

function credentials(context: SectionContext): Html {
  return html`${paragraphs(
    context,
    'Send `Authorization: Bearer <token>` with an access token of signIn or an API key. The schemes `cognito <access token>` and `apikey <key>` are accepted as well.',
    'An access token works for 15 minutes; signInRefreshToken gives the next one. An API key belongs to one organization and acts with the role of the person who made it, but never above MEMBER when it makes keys or changes membership. A key with a `queueWhitelist` may publish to the topics on its list, and nothing else.',
    'Whoever is no member of an organization is answered as if it did not exist.',
  )}
<table>
<thead><tr><th scope="col">Role</th><th scope="col">May</th></tr></thead>
<tbody>
<tr><th scope="row">VIEWER</th><td>read: tasks, topics, files, state, and run queries</td></tr>
<tr><th scope="row">MEMBER</th><td>also write: publish, topics, tasks, state, their own API keys</td></tr>
<tr><th scope="row">ADMIN</th><td>also manage members, the rate limit and every API key</td></tr>
</tbody>
</table>`;
}

function errors(context: SectionContext): Html {
  return html`${paragraphs(
    context,
    'Every error is a problem document (RFC 9457, `application/problem+json`). Branch on `code`, which is stable; show `detail` to people; name `requestId` when asking for help. It is also in the header `x-request-id` of every answer.',
  )}
${sample('400', JSON.stringify(problemExample('VALIDATION_FAILED'), undefined, 2))}
${paragraphs(
  context,
  'What a person signing up or signing in can mend, such as a wrong password or code, is no error: the answer is 200 with `errorMsg`.',
)}
<p>Every code has a page of its own: <a href="/docs/errors">all error codes</a>.</p>`;
}

function rateLimits(context: SectionContext): Html {
  return html`${paragraphs(
    context,
    'The requests of an organization count against its level, which rateLimitGet reads and rateLimitAdjust sets: ONE, TEN and HUNDRED are that many requests a second, DEFAULT is what this server is set to. Ten seconds of it may be used in a burst. A batch of messages counts as one request.',
    'Answers carry `RateLimit-Policy` and `RateLimit`. Over the limit the answer is 429 with `Retry-After`, in seconds. A busy server answers 503 with `Retry-After`, and nothing was accepted.',
  )}`;
}

function paging(context: SectionContext): Html {
  return html`${paragraphs(
    context,
    'Long lists come in pages. While there is more, the answer has a `nextToken`, `cursor` or `nextCursor`: pass it back unchanged, in the parameter or field that the operation names. Tokens are opaque, and good only for the organization and the request that made them.',
  )}`;
}

function conventions(context: SectionContext): Html {
  return html`<ul>
<li>${prose('Bodies are JSON in UTF-8 unless an operation says otherwise. A field that is not known is refused with 400, so a typo never passes in silence.')}</li>
<li>${prose('Times are RFC 3339 in UTC with milliseconds. Exceptions say so: `expiresAt` of an API key is in epoch milliseconds, `ttlInEpochSec` in epoch seconds.')}</li>
<li>${prose('An optional field without a value is left out.')}</li>
<li>${prose('A path may end in a slash or not.')}</li>
<li>${prose('Topics and state entries have a version. Send `expectedVersion` to change only what you have seen: when it has changed meanwhile the answer is 409 and nothing happens.', context.links)}</li>
</ul>`;
}

function limits(context: SectionContext): Html {
  return html`<p>What this server enforces. Its operator can change each one.</p>
${limitsTable(context.contract.limits)}`;
}

const chapters: Readonly<Record<ChapterId, (context: SectionContext) => Html>> = {
  'guide-start': gettingStarted,
  'guide-credentials': credentials,
  'guide-errors': errors,
  'guide-rate-limits': rateLimits,
  'guide-paging': paging,
  'guide-conventions': conventions,
  'guide-limits': limits,
};

/** What a reader should know before the operations. */
export function introduction(context: SectionContext): readonly Html[] {
  return guideChapters.map(
    ({ id, title }) => html`<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${chapters[id](context)}
</section>
`,
  );
}
