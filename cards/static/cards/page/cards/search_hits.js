/** The output of a search in grep's form, grouped by file. Pure. */

const HIT = /^(.+?):(\d+)(?::\d+)?:\s?(.*)$/;

/**
 * @typedef {Object} FoundFile
 * @property {string} path
 * @property {number} count Hits in it.
 * @property {{line: number, text: string, isHit: boolean}[]} rows Hits, and the lines
 *   around them if the search gave any.
 *
 * @param {string} text `path:7: a hit`, `path-8- a line near it`, `--` between groups.
 * @returns {{files: FoundFile[], rest: string}|null} Null when there is no hit at all;
 *   `rest` holds the lines that are none of these.
 */
export function parseHits(text) {
  const lines = text.split('\n').filter((line) => line.trim() && line !== '--');
  const paths = new Set(lines.map((line) => hitOf(line)?.path).filter(Boolean));
  const files = new Map();
  const rest = [];
  for (const line of lines) {
    // A neighbour first: its text may look like a hit, as `a-7- at 12:30:00` does.
    const row = neighbourOf(line, paths) ?? hitOf(line);
    if (row) addRow(files, row);
    else rest.push(line);
  }
  return files.size > 0 ? { files: [...files.values()], rest: rest.join('\n') } : null;
}

function addRow(files, row) {
  const file = files.get(row.path) ?? { path: row.path, count: 0, rows: [] };
  if (row.isHit) file.count += 1;
  file.rows.push(row);
  files.set(row.path, file);
}

function hitOf(line) {
  const match = HIT.exec(line);
  return match && { path: match[1], line: Number(match[2]), text: match[3], isHit: true };
}

/** A path may hold hyphens itself; that it has hits tells where it ends. */
function neighbourOf(line, paths) {
  // The closing hyphen is looked ahead at: it may begin the next number.
  for (const match of line.matchAll(/-(\d+)(?=-)/g)) {
    const path = line.slice(0, match.index);
    if (!paths.has(path)) continue;
    const text = line.slice(match.index + match[0].length + 1).replace(/^\s/, '');
    return { path, line: Number(match[1]), text, isHit: false };
  }
  return null;
}
