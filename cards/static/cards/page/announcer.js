/**
 * Tells screen readers what happens, in whole sentences: a live region over the
 * growing text itself would read every fragment again.
 *
 * @typedef {import('../client/types.js').SessionState} SessionState
 */

import { channelText } from '../client/index.js';
import { shownName } from './artifacts/names.js';

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

/** Read aloud, the marks of Markdown and addresses are noise. */
function heardText(markdown) {
  const withoutAddresses = markdown.replace(/\[([^\]\n]*)\]\([^)\s]*\)/g, '$1');
  return withoutAddresses.slice(0, MAX_CHARS).replace(/[*_`#>|]+/g, '');
}

function heardFile({ name, version }) {
  if (!name) return '';
  return `File ${shownName(name)}${version > 1 ? `, version ${version}` : ''}.`;
}

function sentenceOf(card) {
  if (card.cardKind === 'message') {
    return heardText(channelText(card, 'text'));
  }
  if (card.cardKind === 'artifact') return heardFile(card.payload);
  if (card.cardKind !== 'turn' || card.status === 'ok') return '';
  const error = card.payload.error ?? card.endedBy;
  return error ? error.user_message || error.message : `The turn was ${card.status}.`;
}
