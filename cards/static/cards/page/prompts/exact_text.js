/**
 * Text that is to be judged, with nothing in it unseen. Pure.
 *
 * Characters that turn the direction of writing, take no room or move a terminal's
 * cursor can make a command look like another one.
 */

/** Controls, formats and spaces, but those that everybody knows. */
const UNSEEN = /(?![\n\t ])[\p{Cc}\p{Cf}\p{Z}]/gu;

/**
 * @param {string} text
 * @returns {{text: string, isSign: boolean}[]} In order; a sign stands for one
 *   character, such as `U+202E`.
 */
export function exactParts(text) {
  const parts = [];
  let end = 0;
  for (const { 0: character, index } of text.matchAll(UNSEEN)) {
    if (index > end) parts.push({ text: text.slice(end, index), isSign: false });
    parts.push({ text: signOf(character), isSign: true });
    end = index + character.length;
  }
  if (end < text.length) parts.push({ text: text.slice(end), isSign: false });
  return parts;
}

/** At first so much is shown of a long text. */
const MAX_LINES = 12;
const MAX_CHARS = 900;

/** @returns {string} The beginning of a long text, a short one whole. */
export function beginningOf(text) {
  return text.split('\n', MAX_LINES).join('\n').slice(0, MAX_CHARS);
}

function signOf(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}
