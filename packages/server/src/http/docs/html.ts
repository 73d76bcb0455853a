/**
 * HTML as values. Everything that goes into a template is escaped unless it came out of one, so text can
 * never become markup by being forgotten. The brand is private to this file: no other code can claim that a
 * string is markup.
 */
const markup = Symbol('markup');

/** A piece of HTML that is safe to put into another. */
export interface Html {
  readonly [markup]: string;
}

export type Content = Html | string | number | undefined | readonly Content[];

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as it is written inside an element or a quoted attribute. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

function isHtml(content: Content): content is Html {
  return typeof content === 'object' && markup in content;
}

function render(content: Content): string {
  if (content === undefined) return '';
  if (isHtml(content)) return content[markup];
  if (typeof content === 'string' || typeof content === 'number') return escapeText(String(content));
  return content.map(render).join('');
}

/** A template of HTML; the values in it are escaped. Attributes must be quoted. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  return { [markup]: String.raw({ raw: strings }, ...values.map(render)) };
}

/** A style sheet as an element. Its text is not escaped, because a browser would not undo that. */
export function styleElement(css: string): Html {
  if (css.includes('<')) throw new Error('A style sheet cannot contain markup.');
  return { [markup]: `<style>${css}</style>` };
}

/** The text of a whole document. */
export function documentText(document: Html): string {
  return `<!doctype html>\n${document[markup]}\n`;
}
