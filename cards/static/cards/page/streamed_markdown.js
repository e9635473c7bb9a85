/**
 * Markdown that grows: finished blocks are rendered once and stay, only the block
 * that is still being written is rendered again.
 */

import { settledLines, offsetOfLine } from './markdown_blocks.js';
import { parseMarkdown, renderTokens } from './markdown.js';

/** The share of time that one growing text may take: 1 / (1 + this). */
const REST_FACTOR = 4;

export class StreamedMarkdown {
  constructor() {
    /** The element that shows the text. */
    this.host = document.createElement('div');
    this.host.className = 'prose';
    this.#reset();
  }

  #reset() {
    this.text = '';
    this.isFinal = false;
    this.settledOffset = 0;
    this.references = {};
    this.tail = [];
    this.restUntil = 0;
    this.host.replaceChildren();
  }

  /**
   * Show the text as it is now.
   * @param {string} text Usually the text before and something more.
   * @param {boolean} isFinal Nothing more will come.
   * @returns {boolean} False when it is too early; call again in a later frame.
   */
  update(text, isFinal) {
    if (text.length === this.text.length && isFinal === this.isFinal) return true;
    const startedAt = performance.now();
    if (!isFinal && startedAt < this.restUntil) return false;
    if (this.#mustStartOver(text, isFinal)) this.#reset();
    this.text = text;
    this.isFinal = isFinal;
    this.#renderRest();
    const costMs = performance.now() - startedAt;
    this.restUntil = performance.now() + costMs * REST_FACTOR;
    this.host.classList.toggle('is-streaming', !isFinal);
    return true;
  }

  /** A reference defined late changes links in blocks that were already settled. */
  #mustStartOver(text, isFinal) {
    if (text.length < this.text.length) return true;
    return isFinal && this.settledOffset > 0 && 'references' in this.references;
  }

  #renderRest() {
    const rest = this.text.slice(this.settledOffset);
    const tokens = parseMarkdown(rest, this.references);
    const { line, tokenIndex } = settledLines(tokens, rest);
    for (const node of this.tail) node.remove();
    if (tokenIndex > 0) {
      this.host.append(renderTokens(tokens.slice(0, tokenIndex), this.references));
      this.settledOffset += offsetOfLine(rest, line);
    }
    const fragment = renderTokens(tokens.slice(tokenIndex), this.references);
    this.tail = [...fragment.childNodes];
    this.host.append(fragment);
  }
}
