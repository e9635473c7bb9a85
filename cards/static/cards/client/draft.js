/**
 * Copy-on-write over one state: what a batch does not touch is shared with the
 * state before, what it touches is copied once.
 *
 * @typedef {import('./types.js').Card} Card
 * @typedef {import('./types.js').Prompt} Prompt
 * @typedef {import('./types.js').SessionState} SessionState
 */

export class StateDraft {
  /** @param {SessionState} state Is never changed. */
  constructor(state) {
    /** @type {SessionState} */
    this.next = { ...state };
    this.touched = new Set();
    this.ownsCards = false;
    this.ownsTree = false;
    this.ownsPrompts = false;
    this.ownedLists = new Set();
  }

  /** Return the new state and the ids of the cards that changed. */
  finish() {
    return { state: this.next, touched: this.touched };
  }

  /** @param {Partial<SessionState>} fields */
  assign(fields) {
    Object.assign(this.next, fields);
  }

  /** Note how far the session's own trace has come; other traces are not counted. */
  advance({ trace_id: traceId, seq }) {
    if (traceId === this.next.traceId && seq > this.next.lastSeq) {
      this.next.lastSeq = seq;
    }
  }

  /** @param {Card} card Takes the place of a card with the same id. */
  addCard(card) {
    const known = this.next.cards.get(card.cardId);
    this.#writableCards().set(card.cardId, card);
    this.touched.add(card.cardId);
    if (known?.parentCardId === card.parentCardId) return;
    if (known) this.#removeFromParent(known);
    this.#writableList(card.parentCardId).push(card.cardId);
  }

  /**
   * Return a card that may be changed until the batch ends.
   * @param {string} cardId
   * @returns {Card|null} Null when no such card was added.
   */
  writableCard(cardId) {
    const card = this.next.cards.get(cardId);
    if (!card) return null;
    if (this.touched.has(cardId)) return card;
    const copy = {
      ...card,
      channels: new Map([...card.channels].map(([name, b]) => [name, new Map(b)])),
      ticks: [...card.ticks],
      remarks: [...card.remarks],
    };
    this.#writableCards().set(cardId, copy);
    this.touched.add(cardId);
    return copy;
  }

  /** @param {Prompt} prompt Takes the place of one with the same request id. */
  putPrompt(prompt) {
    if (!this.ownsPrompts) this.next.prompts = new Map(this.next.prompts);
    this.ownsPrompts = true;
    this.next.prompts.set(prompt.requestId, prompt);
  }

  #writableCards() {
    if (!this.ownsCards) this.next.cards = new Map(this.next.cards);
    this.ownsCards = true;
    return this.next.cards;
  }

  #writableList(parentId) {
    if (!this.ownsTree) this.next.tree = new Map(this.next.tree);
    this.ownsTree = true;
    if (!this.ownedLists.has(parentId)) {
      this.next.tree.set(parentId, [...(this.next.tree.get(parentId) ?? [])]);
      this.ownedLists.add(parentId);
    }
    return this.next.tree.get(parentId);
  }

  #removeFromParent(card) {
    const siblings = this.#writableList(card.parentCardId);
    siblings.splice(siblings.indexOf(card.cardId), 1);
  }
}
