/**
 * One card in the document: its element, and what outlives a rendering of it.
 *
 * @typedef {import('../client/types.js').Card} Card
 */

import { render } from '../vendor/lit-html/lit-html.js';
import { templateOf } from './cards/registry.js';
import { codeFigure } from './code.js';
import { StreamedMarkdown } from './streamed_markdown.js';

export class CardView {
  #forest;
  #proses = new Map();
  #codes = new Map();
  #expanded = new Set();
  #opened = new Set();

  /**
   * @param {import('./timeline.js').Timeline} forest Knows the other cards.
   * @param {Card} card
   */
  constructor(forest, card) {
    this.#forest = forest;
    this.cardId = card.cardId;
    this.element = document.createElement(card.cardKind === 'turn' ? 'article' : 'div');
    this.element.className = 'card';
    this.element.dataset.cardId = card.cardId;
    this.element.dataset.cardKind = card.cardKind;
    /** Holds the elements of the cards below this one. */
    this.children = document.createElement('div');
    this.children.className = 'children';
    /** The card as it was drawn last. @type {Card|null} */
    this.drawn = null;
  }

  /** Draw the card as it is now. @param {Card} card */
  draw(card) {
    this.element.dataset.status = card.status;
    render(templateOf(card.cardKind)(card, this), this.element);
    this.drawn = card;
  }

  /**
   * Return the element that shows a growing Markdown text.
   * @param {string} name Tells several texts of one card apart.
   */
  prose(name, text, isFinal) {
    let prose = this.#proses.get(name);
    if (!prose) this.#proses.set(name, (prose = new StreamedMarkdown()));
    if (!prose.update(text, isFinal)) this.#forest.drawLater(this.cardId);
    return prose.host;
  }

  /** Return the element that shows a code block, kept while its text stays. */
  code(name, text, language, label) {
    const known = this.#codes.get(name);
    if (known?.text === text && known.language === language) return known.figure;
    const figure = codeFigure(text, language, label);
    this.#codes.set(name, { text, language, figure });
    return figure;
  }

  /**
   * Tell whether a closed panel is filled: always, except in a very long session.
   * @param {string} name
   */
  isFilled(name) {
    return !this.#forest.isCrowded || this.#opened.has(name);
  }

  /** Fill a panel when it is opened. @param {string} name @param {Event} event */
  fill(name, event) {
    if (!event.target.open || this.isFilled(name)) return;
    this.#opened.add(name);
    this.#forest.drawNow(this.cardId);
  }

  /** Show a long part in full. */
  expand(name) {
    this.#expanded.add(name);
    this.#forest.drawLater(this.cardId);
  }

  isExpanded(name) {
    return this.#expanded.has(name);
  }

  /** @returns {Card[]} */
  childCards() {
    return this.#forest.childCards(this.cardId);
  }

  /** @returns {Card|undefined} */
  lastChild() {
    return this.#forest.lastChild(this.cardId);
  }

  hasChildOfKind(kind) {
    return this.childCards().some((child) => child.cardKind === kind);
  }

  /** @returns {Card|undefined} */
  parentCard() {
    return this.#forest.parentOf(this.cardId);
  }

  /** @returns {string|undefined} The name of a file by its id. */
  artifactName(artifactId) {
    return this.#forest.artifactCard(artifactId)?.payload.name;
  }
}
