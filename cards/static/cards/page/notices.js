/** Errors of the session, until the reader dismisses them. Spec: EMIT 16. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { repeat } from '../vendor/lit-html/directives/repeat.js';
import { childrenOf } from '../client/index.js';
import { errorBox } from './cards/error_box.js';
import { icon } from './icons.js';

export class Notices {
  #root;
  #dismissed = new Set();
  #own = [];
  #shown = [];

  /** @param {HTMLElement} root */
  constructor(root) {
    this.#root = root;
  }

  /** Forget what concerned another session. */
  clear() {
    this.#own = [];
    this.#shown = [];
    this.#draw();
  }

  /** Show an error that the page itself met. @param {string} message */
  add(message) {
    const id = `page-${this.#own.length}`;
    this.#own.push({ eventId: id, error: { type: 'page', message, user_message: message } });
    this.#draw();
  }

  /**
   * Show the errors of a session that are told nowhere else.
   * @param {import('../client/types.js').SessionState} state
   * @param {(error: Object) => boolean} isTold Whether a message of the user that was
   *   refused shows the error itself.
   */
  show(state, isTold) {
    const toldByTurns = state.errors.length > 0 ? errorsOfTurns(state) : new Set();
    this.#shown = state.errors.filter(
      ({ error }) => !isTold(error) && !toldByTurns.has(identityOf(error)),
    );
    this.#draw();
  }

  #dismiss(eventId) {
    this.#dismissed.add(eventId);
    this.#draw();
  }

  #draw() {
    const visible = [...this.#own, ...this.#shown].filter(
      ({ eventId }) => !this.#dismissed.has(eventId),
    );
    render(
      visible.length === 0
        ? nothing
        : repeat(visible, (entry) => entry.eventId, (entry) => this.#notice(entry)),
      this.#root,
    );
  }

  #notice({ eventId, error }) {
    return html`<div class="session-error" role="alert" data-event-id=${eventId}>
      ${errorBox(error)}
      <button type="button" class="icon-button" @click=${() => this.#dismiss(eventId)}>
        ${icon('close')}<span class="sr-only">Dismiss</span>
      </button>
    </div>`;
  }
}

/** A turn that failed shows its error in its place. Spec: Ruling E11. */
function errorsOfTurns(state) {
  const turns = childrenOf(state).map((cardId) => state.cards.get(cardId));
  const errors = turns.map((turn) => turn.payload.error ?? turn.endedBy);
  return new Set(errors.filter(Boolean).map(identityOf));
}

function identityOf({ type, code, message }) {
  return JSON.stringify([type, code, message]);
}
