/** Errors of the session, until the reader dismisses them. Spec: EMIT 16. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { repeat } from '../vendor/lit-html/directives/repeat.js';
import { childrenOf } from '../client/index.js';
import { errorBox } from './cards/card_parts.js';
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
   * Show the errors of a session.
   * @param {import('../client/types.js').SessionState} state
   * @param {number} historySeq Errors up to here happened before the page came.
   * @param {(error: Object) => boolean} isTold Whether a message of the user that was
   *   refused shows the error itself.
   */
  show(state, historySeq, isTold) {
    this.#shown = state.errors.filter((entry) => {
      if (isTold(entry.error)) return false;
      return !(isHistory(entry, state, historySeq) && isToldByTurn(state, entry.error));
    });
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

function isHistory({ traceId, seq }, state, historySeq) {
  return traceId === state.traceId && seq <= historySeq;
}

/** An old error that its failed turn shows anyway need not come up again. */
function isToldByTurn(state, error) {
  return childrenOf(state).some((cardId) => {
    const told = state.cards.get(cardId).payload.error;
    return told && told.type === error.type && told.message === error.message;
  });
}
