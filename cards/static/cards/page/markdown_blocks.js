/** Which blocks of a growing Markdown text can no longer change. Pure. */

const LINE_END = /\r\n?|\n/g;

/**
 * Find where the last block begins, if everything before it is settled.
 *
 * A block settles the ones before it only once its first line is complete: `2` may
 * still become `2. item` and so belong to the list above.
 *
 * @param {{level: number, nesting: number, map: number[]|null}[]} tokens Of a parse.
 * @param {string} text What was parsed.
 * @returns {{line: number, tokenIndex: number}} Zeros when nothing is settled.
 */
export function settledLines(tokens, text) {
  for (let index = tokens.length - 1; index > 0; index -= 1) {
    const token = tokens[index];
    if (token.level !== 0 || token.nesting < 0 || !token.map) continue;
    const line = token.map[0];
    const isComplete = offsetOfLine(text, line + 1) >= 0;
    if (isComplete) return { line, tokenIndex: index };
  }
  return { line: 0, tokenIndex: 0 };
}

/**
 * Return where a line begins.
 * @param {string} text
 * @param {number} line From 0.
 * @returns {number} -1 when the text has no such line yet.
 */
export function offsetOfLine(text, line) {
  if (line === 0) return 0;
  let seen = 0;
  for (const match of text.matchAll(LINE_END)) {
    seen += 1;
    if (seen === line) return match.index + match[0].length;
  }
  return -1;
}
