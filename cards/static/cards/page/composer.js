/** The field for the user's words. Enter sends, Shift+Enter begins a new line. */

import { html, render } from '../vendor/lit-html/lit-html.js';
import { icon } from './icons.js';

export class Composer {
  #form;
  #onSend;
  #drafts = new Map();
  #sessionId = '';

  /**
   * @param {HTMLFormElement} form
   * @param {(text: string) => void} onSend
   */
  constructor(form, onSend) {
    this.#form = form;
    this.#onSend = onSend;
    this.#draw();
    this.field = form.querySelector('textarea');
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  focus() {
    this.field.focus({ preventScroll: true });
  }

  /** Keep the unsent words of one session and bring back those of another. */
  switchTo(sessionId) {
    this.#drafts.set(this.#sessionId, this.field.value);
    this.#sessionId = sessionId;
    this.field.value = this.#drafts.get(sessionId) ?? '';
    this.#fit();
  }

  /** The new conversation has got its id; the words in the field stay. */
  rename(sessionId) {
    this.#drafts.delete(this.#sessionId);
    this.#sessionId = sessionId;
  }

  #submit() {
    const text = this.field.value;
    if (!text.trim()) return;
    this.field.value = '';
    this.#fit();
    this.#onSend(text);
  }

  #handleKey(event) {
    // While an input method composes, Enter picks a candidate.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.#submit();
  }

  /** Grow with the text; the style sheet sets the limit. */
  #fit() {
    this.field.style.height = 'auto';
    this.field.style.height = `${this.field.scrollHeight}px`;
    this.#form.querySelector('.send').disabled = !this.field.value.trim();
  }

  #draw() {
    render(
      html`
        <textarea
          id="composer-text"
          rows="1"
          placeholder="Write a message"
          aria-label="Message"
          aria-describedby="composer-hint"
          enterkeyhint="send"
          @keydown=${(event) => this.#handleKey(event)}
          @input=${() => this.#fit()}
        ></textarea>
        <button class="send" type="submit" disabled>
          ${icon('send')}<span class="sr-only">Send</span>
        </button>
        <p class="composer-hint" id="composer-hint">
          <kbd>Enter</kbd> sends, <kbd>Shift</kbd> + <kbd>Enter</kbd> begins a new line
        </p>
      `,
      this.#form,
    );
  }
}
