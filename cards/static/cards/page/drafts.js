/**
 * Words that were not sent, per session, as long as the tab lives: they are still
 * there after a reload and after signing in again.
 */

const PREFIX = 'cardwire.draft.';

/** @param {string} sessionId Empty for a new conversation. */
export function draftOf(sessionId) {
  return sessionStorage.getItem(PREFIX + sessionId) ?? '';
}

/** @param {string} sessionId @param {string} text Empty to forget. */
export function keepDraft(sessionId, text) {
  if (text) sessionStorage.setItem(PREFIX + sessionId, text);
  else sessionStorage.removeItem(PREFIX + sessionId);
}

/** Forget all drafts, as when somebody else may use the tab next. */
export function forgetDrafts() {
  const names = Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX));
  for (const name of names) sessionStorage.removeItem(name);
}

/** Return texts as one, none of their words lost. @param {string[]} texts */
export function joined(texts) {
  return texts.filter((text) => text.trim()).join('\n\n');
}
