/** Names and ids of files, as they may be shown and used. Pure. */

/** Characters that move the text around them, or that nobody sees. */
const MISLEADING = /[\p{Cc}\p{Bidi_Control}]/gu;

/** What the server mints is `art_` and hex; others may name theirs more freely. */
const ID = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Return a file's name with nothing in it that could make it look like another one.
 * @param {any} name
 */
export function shownName(name) {
  return String(name ?? '').replace(MISLEADING, signOf);
}

function signOf(character) {
  return `[U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`;
}

/** @param {any} id Tell whether it may be the id of a file. */
export function isArtifactId(id) {
  return typeof id === 'string' && ID.test(id);
}

/** @param {string} href @returns {boolean} Whether it is of our scheme, good or bad. */
export function isArtifactUri(href) {
  return /^\s*artifact:/i.test(href);
}

/**
 * Return which file an address of the form `artifact://id` means.
 * @param {string} href
 * @returns {string} Empty when it means none.
 */
export function artifactIdOf(href) {
  const id = /^artifact:(?:\/\/)?(.*)$/i.exec(href)?.[1] ?? '';
  return isArtifactId(id) ? id : '';
}
