/**
 * The field for the user's words, and the button that stops what they caused.
 *
 * Enter sends, Shift+Enter begins a new line, Escape stops. What is sent waits for the
 * files that are still on their way.
 */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { shownName } from './artifacts/names.js';
import { tray } from './attachments/tray.js';
import { draftOf, joined, keepDraft } from './drafts.js';
import { icon } from './icons.js';

const WAITING = 'Will be sent when the files are there.';
const FAILED = 'A file is not attached: try it again or remove it.';

export class Composer {
  #form;
  #handlers;
  #attachments;
  #work = { isBusy: false, isStopping: false };
  #isWaiting = false;
  #sessionId = '';

  /**
   * @param {HTMLFormElement} form
   * @param {import('./attachments/attachments.js').Attachments} attachments
   * @param {Object} handlers
   * @param {(text: string) => void} handlers.onSend
   * @param {() => void} handlers.onStop
   * @param {(files: File[]) => void} handlers.onFiles
   * @param {(text: string) => void} handlers.say Aloud.
   */
  constructor(form, attachments, handlers) {
    this.#form = form;
    this.#attachments = attachments;
    this.#handlers = handlers;
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

  /** Offer to stop while there is something to stop. @param {import('./work.js').Work} work */
  show(work) {
    // Who stopped by the button goes on at the field when the button goes.
    const leavesFocus = !work.isBusy && document.activeElement?.classList.contains('stop');
    this.#work = work;
    this.#draw();
    this.#form.classList.toggle('is-busy', work.isBusy);
    if (leavesFocus) this.focus();
  }

  /** Show the files as they are now, and send what waited for them. */
  showFiles() {
    if (this.#isWaiting && !this.#attachments.isBusy) {
      this.#isWaiting = false;
      this.#submit();
    }
    this.#draw();
    this.#fit();
  }

  /** Keep the unsent words of one session and bring back those of another. */
  switchTo(sessionId) {
    this.#sessionId = sessionId;
    this.#isWaiting = false;
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
    if (!this.#hasSomething()) return;
    const { failed, isBusy } = this.#attachments;
    if (failed) return void this.#handlers.say(`Not sent: ${shownName(failed.name)} is not attached. Try it again or remove it.`);
    if (isBusy) return void this.#waitForFiles(!this.#isWaiting);
    const text = this.field.value;
    this.field.value = '';
    this.keep();
    this.#fit();
    this.#handlers.onSend(text);
  }

  /** Sending once more while it waits means not to send yet. */
  #waitForFiles(isWaiting) {
    this.#isWaiting = isWaiting;
    this.#draw();
    this.#handlers.say(isWaiting ? WAITING : 'Not sent.');
  }

  #hasSomething() {
    return this.field.value.trim() !== '' || this.#attachments.entries.length > 0;
  }

  #handleKey(event) {
    // While an input method composes, Enter picks a candidate and Escape drops it.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === 'Escape') this.#leave();
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    this.#submit();
  }

  /** The button that was pressed goes with its file. */
  #remove(key) {
    this.#attachments.remove(key);
    this.focus();
  }

  #leave() {
    if (this.#isWaiting) this.#waitForFiles(false);
    else this.#handlers.onStop();
  }

  #pick({ target }) {
    const files = [...target.files];
    // The same file may be picked again.
    target.value = '';
    if (files.length > 0) this.#handlers.onFiles(files);
    this.focus();
  }

  /** Grow with the text; the style sheet sets the limit. */
  #fit() {
    this.field.style.height = 'auto';
    this.field.style.height = `${this.field.scrollHeight}px`;
    this.#form.querySelector('.send').disabled = !this.#hasSomething();
  }

  #draw() {
    const { isBusy, isStopping } = this.#work;
    const { entries, failed } = this.#attachments;
    render(
      html`
        <div class="composer-files">
          ${tray(entries, {
            onRemove: (key) => this.#remove(key),
            onRetry: (key) => this.#attachments.retry(key),
          })}
        </div>
        <input
          type="file"
          multiple
          hidden
          @change=${(event) => this.#pick(event)}
        />
        <button
          type="button"
          class="attach icon-button"
          title="Attach files"
          @click=${() => this.#form.querySelector('input[type=file]').click()}
        >
          ${icon('clip')}<span class="sr-only">Attach files</span>
        </button>
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
                @click=${() => this.#handlers.onStop()}
              >
                ${icon('stop')}<span class="sr-only">Stop</span>
              </button>`
            : nothing}
          <button class="send" type="submit" disabled aria-pressed=${this.#isWaiting ? 'true' : nothing}>
            ${icon(this.#isWaiting ? 'clock' : 'send')}<span class="sr-only">Send</span>
          </button>
        </div>
        <p class="composer-hint" id="composer-hint">
          ${this.#isWaiting ? WAITING : failed ? FAILED : hint(isBusy, isStopping)}
        </p>
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
