/** What differs between two texts, line by line. Pure. */

import { structuredPatch } from '../../vendor/diff/patch/create.js';

/** Lines of context around a change. */
const CONTEXT = 3;

/** More lines than these are counted instead of shown. */
export const MAX_LINES = 1500;

/** After this long the texts count as too different, in ms. */
const TIMEOUT_MS = 1500;

/**
 * @typedef {Object} Changes
 * @property {{kind: 'added'|'removed'|'same'|'hunk'|'note', text: string}[]} lines
 * @property {number} added
 * @property {number} removed
 * @property {number} moreLines
 *
 * @param {string} before
 * @param {string} after
 * @returns {Changes|null} Null when they differ too much to be compared in time.
 */
export function changesBetween(before, after) {
  const options = { context: CONTEXT, timeout: TIMEOUT_MS };
  const patch = structuredPatch('', '', before, after, '', '', options);
  if (!patch) return null;
  const all = patch.hunks.flatMap((hunk) => [hunkLine(hunk), ...hunk.lines.map(lineOf)]);
  const count = (kind) => all.filter((line) => line.kind === kind).length;
  return {
    lines: all.slice(0, MAX_LINES),
    added: count('added'),
    removed: count('removed'),
    moreLines: Math.max(0, all.length - MAX_LINES),
  };
}

/** @param {Changes} changes @returns {string} In words. */
export function changesInWords({ added, removed }) {
  if (added + removed === 0) return 'No differences';
  return `${lines(added)} added, ${removed} removed`;
}

function lines(count) {
  return count === 1 ? '1 line' : `${count} lines`;
}

function hunkLine({ newStart, newLines }) {
  const to = newStart + Math.max(newLines, 1) - 1;
  return { kind: 'hunk', text: newStart === to ? `Line ${to}` : `Lines ${newStart} to ${to}` };
}

const KINDS = { '+': 'added', '-': 'removed', '\\': 'note' };

function lineOf(line) {
  const kind = KINDS[line[0]] ?? 'same';
  return { kind, text: kind === 'note' ? 'No line end at the end of the file' : line.slice(1) };
}
