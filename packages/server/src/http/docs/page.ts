import { type Content, documentText, type Html, html, styleElement } from './html.ts';
import { css } from './style.ts';

/** A whole page as text: the head that all pages share, and the given body. */
export function page(title: string, description: string, body: Html): string {
  return documentText(html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<meta name="description" content="${description}">
${styleElement(css)}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
${body}
</body>
</html>`);
}

const operationId = /\b[a-z]+(?:[A-Z][A-Za-z]*)+\b/g;

function linked(text: string, links: ReadonlySet<string>, base: string): readonly Content[] {
  const pieces: Content[] = [];
  let end = 0;
  for (const match of text.matchAll(operationId)) {
    if (!links.has(match[0])) continue;
    pieces.push(text.slice(end, match.index), html`<a href="${base}#${match[0]}">${match[0]}</a>`);
    end = match.index + match[0].length;
  }
  return [...pieces, text.slice(end)];
}

/**
 * A sentence of the contract: what stands in backquotes becomes code, and the ids of other operations
 * become links to them.
 */
export function prose(text: string, links: ReadonlySet<string> = new Set(), base = ''): Html {
  const pieces = text
    .split('`')
    .map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : linked(piece, links, base)));
  return html`${pieces}`;
}

/** A captioned block of code. */
export function sample(caption: string, code: string): Html {
  return html`<figure class="sample"><figcaption>${caption}</figcaption><pre><code>${code}</code></pre></figure>`;
}
