/**
 * Reads the tree of a statement as DuckDB writes it: JSON, but for numbers such as `1e400`, which stand in it
 * as bare words. Which number it was says nothing about what a statement may do, so null stands for it.
 */
export function parseTree(text: string): unknown {
  return JSON.parse(bareWord.test(text) ? withoutBareWords(text) : text);
}

const bareWord = /[:,[]-?(?:Infinity|NaN)\b/i;

function withoutBareWords(text: string): string {
  // Texts in the tree may hold the same words. They are passed over whole, and come out as they were.
  return text.replace(/"[^"\\]*"|"(?:[^"\\]|\\.)*"|-?(?:Infinity|NaN)\b/gi, (found) =>
    found.startsWith('"') ? found : 'null',
  );
}
