/**
 * Tells screen readers what happens, in whole sentences: a live region over the
 * growing text itself would read every fragment again.
 *
 * @typedef {import('../client/types.js').SessionState} SessionState
 */

import { channelText } from '../client/index.js';

/** Sentences that are kept; older ones were read long ago. */
const MAX_SENTENCES = 4;

/** A long reply is announced by its beginning; the rest is there to be read. */
const MAX_CHARS = 500;

export class Announcer {
  #region;
  #spoken = new Set();

  /** @param {HTMLElement} region With `aria-live`. */
  constructor(region) {
    this.#region = region;
  }

  /** Say one thing, behind what is still being said. @param {string} text */
  say(text) {
    const sentence = document.createElement('p');
    sentence.textContent = text;
    this.#region.append(sentence);
    while (this.#region.children.length > MAX_SENTENCES) this.#region.firstElementChild.remove();
  }

  /**
   * Say what ended in a live session.
   * @param {SessionState} state
   * @param {Iterable<string>} touched
   */
  follow(state, touched) {
    for (const cardId of touched) {
      const card = state.cards.get(cardId);
      if (!card || card.status === 'open' || this.#spoken.has(cardId)) continue;
      this.#spoken.add(cardId);
      const text = sentenceOf(card);
      if (text) this.say(text);
    }
  }
}

function sentenceOf(card) {
  if (card.cardKind === 'message') {
    // Read aloud, the marks of Markdown are noise.
    return channelText(card, 'text').slice(0, MAX_CHARS).replace(/[*_`#>|]+/g, '');
  }
  if (card.cardKind !== 'turn' || card.status === 'ok') return '';
  const error = card.payload.error ?? card.endedBy;
  return error ? error.user_message || error.message : `The turn was ${card.status}.`;
}
