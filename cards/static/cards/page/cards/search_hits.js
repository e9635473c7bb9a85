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
  const files = filesWithHits(lines);
  if (files.size === 0) return null;
  const rest = [];
  for (const line of lines) {
    const row = hitOf(line) ?? neighbourOf(line, files);
    if (!row) rest.push(line);
    else files.get(row.path).rows.push(row);
  }
  return { files: [...files.values()], rest: rest.join('\n') };
}

function filesWithHits(lines) {
  const files = new Map();
  for (const line of lines) {
    const path = hitOf(line)?.path;
    if (path === undefined) continue;
    const file = files.get(path) ?? { path, count: 0, rows: [] };
    file.count += 1;
    files.set(path, file);
  }
  return files;
}

function hitOf(line) {
  const match = HIT.exec(line);
  return match && { path: match[1], line: Number(match[2]), text: match[3], isHit: true };
}

/** A path may hold hyphens itself; that it has hits tells where it ends. */
function neighbourOf(line, files) {
  for (const match of line.matchAll(/-(\d+)-\s?/g)) {
    const path = line.slice(0, match.index);
    if (!files.has(path)) continue;
    const text = line.slice(match.index + match[0].length);
    return { path, line: Number(match[1]), text, isHit: false };
  }
  return null;
}
