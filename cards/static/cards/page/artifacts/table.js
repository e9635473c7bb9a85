/** Delimited text as rows, some hundreds of them at most. Pure. */

import { dsvFormat } from '../../vendor/d3-dsv/d3-dsv.js';

/** More than these are counted instead of shown. */
export const MAX_ROWS = 300;
export const MAX_COLUMNS = 50;

/** In the order in which they are taken when the text does not tell. */
const DELIMITERS = [',', ';', '\t', '|'];

/** Lines by which the delimiter is guessed. */
const GUESS_LINES = 20;

/**
 * @typedef {Object} Table
 * @property {string[]} head The first row.
 * @property {string[][]} rows The others, as long as the widest.
 * @property {number} moreRows
 * @property {number} moreColumns
 *
 * @param {string} text
 * @param {Object} [options]
 * @param {boolean} [options.isTabbed] What is between the cells is known to be a tab.
 * @param {boolean} [options.isCut] The text ends somewhere, so its last row does not
 *   count.
 * @returns {Table|null} Null when there is not one row.
 */
export function parseTable(text, { isTabbed = false, isCut = false } = {}) {
  const delimiter = isTabbed ? '\t' : guessDelimiter(text);
  const all = dsvFormat(delimiter).parseRows(text);
  if (isCut && all.length > 1) all.pop();
  const isFilled = (row) => row.some((cell) => cell !== '');
  const filled = all.filter(isFilled);
  if (filled.length === 0) return null;
  const width = filled.reduce((widest, row) => Math.max(widest, row.length), 0);
  const shownWidth = Math.min(width, MAX_COLUMNS);
  const [head, ...rows] = filled.slice(0, MAX_ROWS + 1).map((row) => filledUp(row, shownWidth));
  return { head, rows, moreRows: filled.length - 1 - rows.length, moreColumns: width - shownWidth };
}

/** The one that gives every line the same number of cells, and the most of them. */
function guessDelimiter(text) {
  const sample = text.split(/\r\n?|\n/, GUESS_LINES + 1).slice(0, GUESS_LINES).join('\n');
  let best = { delimiter: DELIMITERS[0], score: 1 };
  for (const delimiter of DELIMITERS) {
    const rows = dsvFormat(delimiter).parseRows(sample).filter((row) => row.length > 1 || row[0]);
    const widths = rows.map((row) => row.length);
    const score = Math.min(...widths) === Math.max(...widths) ? widths[0] : 1;
    if (score > best.score) best = { delimiter, score };
  }
  return best.delimiter;
}

function filledUp(row, width) {
  return Array.from({ length: width }, (_, index) => row[index] ?? '');
}
