/**
 * The forest of cards in the document. Only cards that changed are drawn, and never
 * for longer than a part of one animation frame at a time.
 *
 * @typedef {import('../client/types.js').Answer} Answer
 * @typedef {import('../client/types.js').Card} Card
 * @typedef {import('../client/types.js').Prompt} Prompt
 * @typedef {import('../client/types.js').SessionState} SessionState
 */

import { childrenOf } from '../client/index.js';
import { CardView } from './card_view.js';
import { afterFrame } from './frames.js';
import { PromptLines } from './prompts/lines.js';

/** Drawing stops after this many ms, so that input and scrolling stay smooth. */
const SLICE_MS = 10;

/** The same while a long history is drawn, of which nothing is shown yet. */
const LOADING_SLICE_MS = 30;

/** In a session of more cards than this, closed panels are filled when opened. */
const CROWDED_FROM = 1000;

export class Timeline {
  #root;
  #state = null;
  #views = new Map();
  #dirty = new Set();
  #artifacts = new Map();
  #lines = new PromptLines(this);
  #answers = new Map();
  #isScheduled = false;
  #isLoading = false;

  /**
   * @param {HTMLElement} root Has the class `is-loading` while a long history is
   *   drawn.
   */
  constructor(root) {
    this.#root = root;
  }

  /** Whether there are so many cards that what is folded is not drawn. */
  get isCrowded() {
    return this.#state.cards.size > CROWDED_FROM;
  }

  /**
   * Show a state.
   * @param {SessionState} state
   * @param {Iterable<string>} touched Ids of the cards that changed.
   * @param {boolean} isHistory More of the past is still to come: the forest stays
   *   hidden until all of it is there.
   */
  show(state, touched, isHistory) {
    this.#state = state;
    this.#isLoading = isHistory;
    if (isHistory) this.#root.classList.add('is-loading');
    for (const cardId of touched) {
      this.#dirty.add(cardId);
      // A parent tells of its children: how many steps are done, who is speaking.
      const parentId = state.cards.get(cardId)?.parentCardId;
      if (parentId && state.cards.has(parentId)) this.#dirty.add(parentId);
    }
    this.#finishWhenDone();
    this.#schedule();
  }

  /** Show prompts with this tab's own answers. @param {Map<string, Answer>} answers */
  showAnswers(answers) {
    this.#answers = answers;
    this.#finishWhenDone();
  }

  /** Remove every card. */
  clear() {
    this.#root.replaceChildren();
    this.#root.classList.remove('is-loading');
    this.#views.clear();
    this.#dirty.clear();
    this.#artifacts.clear();
    this.#lines.clear();
    this.#state = null;
  }

  /** Draw a card again at once. */
  drawNow(cardId) {
    this.#drawCard(cardId);
  }

  /** Draw a card again in a later frame. */
  drawLater(cardId) {
    // Not at once: while a slice is running the set would never become empty.
    afterFrame(() => {
      this.#dirty.add(cardId);
      this.#schedule();
    });
  }

  /** @returns {Card[]} */
  childCards(cardId) {
    return childrenOf(this.#state, cardId).map((id) => this.#state.cards.get(id));
  }

  /** @returns {Card|undefined} */
  lastChild(cardId) {
    return this.#state.cards.get(childrenOf(this.#state, cardId).at(-1));
  }

  /** @returns {Card|undefined} */
  parentOf(cardId) {
    return this.#state.cards.get(this.#state.cards.get(cardId)?.parentCardId);
  }

  /** @returns {Card|undefined} The newest card of a file. */
  artifactCard(artifactId) {
    return this.#state?.cards.get(this.#artifacts.get(artifactId));
  }

  /** Bring a card into view and point it out; tell whether there is one. */
  reveal(cardId) {
    const view = this.#views.get(cardId);
    if (!view) return false;
    for (let up = view.element.parentElement; up; up = up.parentElement) {
      if (up instanceof HTMLDetailsElement) up.open = true;
    }
    view.element.scrollIntoView({ block: 'center' });
    view.element.classList.remove('is-revealed');
    requestAnimationFrame(() => view.element.classList.add('is-revealed'));
    return true;
  }

  /**
   * Put a prompt's line where it was asked, behind lines of older prompts.
   * @param {HTMLElement} line
   * @param {Prompt} prompt
   */
  place(line, { seq, turnCardId, afterCardId }) {
    const host = this.#views.get(turnCardId)?.children ?? this.#root;
    const before = this.#views.get(afterCardId)?.element;
    let next = before ? before.nextElementSibling : host.firstElementChild;
    while (next?.classList.contains('prompt-line') && next.dataset.seq < seq) {
      next = next.nextElementSibling;
    }
    (before?.parentElement ?? host).insertBefore(line, next);
  }

  #schedule() {
    if (this.#isScheduled || this.#dirty.size === 0) return;
    this.#isScheduled = true;
    afterFrame(() => {
      this.#isScheduled = false;
      this.#drawSlice();
    });
  }

  #drawSlice() {
    const isHidden = this.#root.classList.contains('is-loading');
    const deadline = performance.now() + (isHidden ? LOADING_SLICE_MS : SLICE_MS);
    for (const cardId of this.#dirty) {
      this.#dirty.delete(cardId);
      this.#drawCard(cardId);
      if (performance.now() > deadline) break;
    }
    this.#finishWhenDone();
    this.#schedule();
  }

  /** A prompt's line stands behind a card, so all cards come first. */
  #finishWhenDone() {
    if (!this.#state || this.#dirty.size > 0) return;
    this.#lines.show(this.#state.prompts, this.#answers);
    if (this.#isLoading) return;
    this.#root.classList.remove('is-loading');
  }

  #drawCard(cardId) {
    const card = this.#state?.cards.get(cardId);
    if (!card) return;
    if (card.cardKind === 'artifact') {
      this.#artifacts.set(card.payload.artifact_id, cardId);
    }
    this.#viewOf(card).draw(card);
  }

  #viewOf(card) {
    let view = this.#views.get(card.cardId);
    if (view) return view;
    view = new CardView(this, card);
    this.#views.set(card.cardId, view);
    this.#hostOf(card).append(view.element);
    this.#adoptChildren(view);
    return view;
  }

  #hostOf(card) {
    const parent = this.#state.cards.get(card.parentCardId);
    return parent ? this.#viewOf(parent).children : this.#root;
  }

  /** Cards that came before their parent stood at the root until now. */
  #adoptChildren(view) {
    for (const childId of childrenOf(this.#state, view.cardId)) {
      const child = this.#views.get(childId);
      if (child) view.children.append(child.element);
    }
  }
}
