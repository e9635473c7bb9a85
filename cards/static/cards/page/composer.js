/**
 * The field for the user's words, and the button that stops what they caused.
 *
 * Enter sends, Shift+Enter begins a new line, Escape stops.
 */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { draftOf, joined, keepDraft } from './drafts.js';
import { icon } from './icons.js';

export class Composer {
  #form;
  #onSend;
  #onStop;
  #sessionId = '';

  /**
   * @param {HTMLFormElement} form
   * @param {Object} handlers
   * @param {(text: string) => void} handlers.onSend
   * @param {() => void} handlers.onStop
   */
  constructor(form, { onSend, onStop }) {
    this.#form = form;
    this.#onSend = onSend;
    this.#onStop = onStop;
    this.#draw({ isBusy: false, isStopping: false });
    this.field = form.querySelector('textarea');
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  focus() {
    this.field.focus({ preventScroll: true });
  }

  /** Offer to stop while there is something to stop. @param {import('./work.js').Work} work */
  show(work) {
    // Who stopped by the button goes on at the field when the button goes.
    const leavesFocus = !work.isBusy && document.activeElement?.classList.contains('stop');
    this.#draw(work);
    this.#form.classList.toggle('is-busy', work.isBusy);
    if (leavesFocus) this.focus();
  }

  /** Keep the unsent words of one session and bring back those of another. */
  switchTo(sessionId) {
    this.#sessionId = sessionId;
    this.field.value = draftOf(sessionId);
    this.#fit();
  }

  /** Keep the words for when the session is shown again, with others before them. */
  keep(texts = []) {
    keepDraft(this.#sessionId, joined([...texts, this.field.value]));
  }

  /** Put words back that could not be sent, before those that were written since. */
  giveBack(text) {
    this.field.value = joined([text, this.field.value]);
    this.keep();
    this.#fit();
  }

  /** The new conversation has got its id; the words in the field stay. */
  rename(sessionId) {
    keepDraft(this.#sessionId, '');
    this.#sessionId = sessionId;
  }

  #submit() {
    const text = this.field.value;
    if (!text.trim()) return;
    this.field.value = '';
    this.keep();
    this.#fit();
    this.#onSend(text);
  }

  #handleKey(event) {
    // While an input method composes, Enter picks a candidate and Escape drops it.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === 'Escape') this.#onStop();
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    this.#submit();
  }

  /** Grow with the text; the style sheet sets the limit. */
  #fit() {
    this.field.style.height = 'auto';
    this.field.style.height = `${this.field.scrollHeight}px`;
    this.#form.querySelector('.send').disabled = !this.field.value.trim();
  }

  #draw({ isBusy, isStopping }) {
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
        <div class="composer-buttons">
          ${isBusy
            ? html`<button
                class="stop"
                type="button"
                title="Stop (Esc)"
                aria-pressed=${isStopping ? 'true' : 'false'}
                @click=${() => this.#onStop()}
              >
                ${icon('stop')}<span class="sr-only">Stop</span>
              </button>`
            : nothing}
          <button class="send" type="submit" disabled>
            ${icon('send')}<span class="sr-only">Send</span>
          </button>
        </div>
        <p class="composer-hint" id="composer-hint">${hint(isBusy, isStopping)}</p>
      `,
      this.#form,
    );
  }
}

function hint(isBusy, isStopping) {
  if (isStopping) return 'Stopping…';
  if (isBusy) return html`<kbd>Enter</kbd> queues a message, <kbd>Esc</kbd> stops`;
  return html`<kbd>Enter</kbd> sends, <kbd>Shift</kbd> + <kbd>Enter</kbd> begins a new line`;
}
