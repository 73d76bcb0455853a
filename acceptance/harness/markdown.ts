import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** One fenced block of a page. */
export interface Block {
  /** Where it begins, as `README.md:12`. */
  readonly place: string;
  /** What stands behind the opening fence, such as `sh`. */
  readonly language: string;
  readonly text: string;
  /** The `run:` directive above it, without its dressing. */
  readonly directive: string | undefined;
}

export interface Page {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly Block[];
}

export function readPage(root: string, path: string): Page {
  const text = readFileSync(join(root, path), 'utf8');
  return { path, text, blocks: blocksOf(path, text) };
}

const fence = /^(?:<!-- run: ([\s\S]*?) -->\n\n)?```(\w*)\n([\s\S]*?)^```$/gm;

function blocksOf(path: string, text: string): Block[] {
  return [...text.matchAll(fence)].map((match) => ({
    place: `${path}:${text.slice(0, match.index).split('\n').length}`,
    language: match[2] ?? '',
    text: match[3] ?? '',
    directive: match[1],
  }));
}

/** The links of a page to other files: where they lead from the root, and to which heading. */
export function localLinks(page: Page): { link: string; path: string; anchor: string | undefined }[] {
  return [...withoutBlocks(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map((match) => match[1] ?? '')
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [file = '', anchor] = link.split('#');
      const path = file === '' ? page.path : join(dirname(page.path), file);
      return { link, path, anchor };
    });
}

/** The anchors of the headings of a page, as they are made where the pages are read. */
export function anchorsOf(page: Page): Set<string> {
  const headings = withoutBlocks(page).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map((heading) =>
      (heading[1] ?? '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** The cells of the table between `<!-- name -->` and `<!-- /name -->`, heads first; how it is padded is no matter. */
export function tableCells(page: Page, name: string): string[][] {
  const text = new RegExp(`<!-- ${name} -->\n([\\s\\S]*?)<!-- /${name} -->`).exec(page.text)?.[1] ?? '';
  const rows = text
    .trim()
    .split('\n')
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  return rows.filter((cells) => !cells.every((cell) => /^-+$/.test(cell)));
}

function withoutBlocks(page: Page): string {
  return page.text.replace(fence, '');
}
