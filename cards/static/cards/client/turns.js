/**
 * Which turn a session is in.
 *
 * @typedef {import('./types.js').Card} Card
 * @typedef {import('./types.js').SessionState} SessionState
 */

/**
 * Return the name that the server gives to a message's turn card. Spec: Ruling E7.
 * @param {string} eventId One of ours, which are always safe.
 */
export function turnCardIdOf(eventId) {
  return `turn_${eventId}`;
}

/** @param {SessionState} state @returns {Card|undefined} The newest turn. */
export function lastTurn({ cards, tree }) {
  const newestId = tree.get('')?.findLast((id) => cards.get(id).cardKind === 'turn');
  return cards.get(newestId);
}

/**
 * Return the turn that is open; one runs at a time. Spec: Ruling E9.
 * @param {SessionState} state
 * @returns {Card|undefined}
 */
export function runningTurn(state) {
  const turn = lastTurn(state);
  return turn?.status === 'open' ? turn : undefined;
}
