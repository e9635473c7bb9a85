/**
 * Terminal text: colours become named styles, all other control codes are dropped.
 * Pure.
 *
 * @typedef {{text: string, style: string}} Run `style`: class names; may be empty.
 */

const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

// CSI sequences, OSC sequences, and the remaining two-byte escapes.
// eslint-disable-next-line no-control-regex
const ESCAPES = /\x1b\[([0-9;:?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]/g;

/**
 * Split terminal output into runs of one style.
 * @param {string} text
 * @returns {Run[]}
 */
export function parseAnsi(text) {
  if (!text.includes('\x1b')) return [{ text, style: '' }];
  const runs = [];
  let style = new Map();
  let from = 0;
  const push = (until) => {
    if (until > from) {
      runs.push({ text: text.slice(from, until), style: [...style.values()].join(' ') });
    }
  };
  for (const match of text.matchAll(ESCAPES)) {
    push(match.index);
    from = match.index + match[0].length;
    if (match[2] === 'm') style = restyle(style, match[1]);
  }
  push(text.length);
  return runs;
}

function restyle(style, parameters) {
  const next = new Map(style);
  for (const code of parameters.split(/[;:]/).map(Number)) applyCode(next, code);
  return next;
}

function applyCode(style, code) {
  if (code === 0) style.clear();
  else if (code === 1) style.set('weight', 'ansi-bold');
  else if (code === 2) style.set('weight', 'ansi-dim');
  else if (code === 3) style.set('slant', 'ansi-italic');
  else if (code === 22) style.delete('weight');
  else if (code === 23) style.delete('slant');
  else if (code === 39) style.delete('color');
  else if (code >= 30 && code <= 37) style.set('color', `ansi-${COLORS[code - 30]}`);
  else if (code >= 90 && code <= 97) style.set('color', `ansi-${COLORS[code - 90]}`);
}
