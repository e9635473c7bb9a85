/** The user's messages that have no turn yet: on their way, queued, or refused. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { repeat } from '../vendor/lit-html/directives/repeat.js';
import { errorBox } from './cards/card_parts.js';

/**
 * @param {HTMLElement} root
 * @param {Object} shown
 * @param {import('../client/types.js').OutboxEntry[]} shown.outbox
 * @param {{event_id: string, text: string}[]} shown.queue
 * @param {boolean} shown.isOpen Whether the connection is there.
 * @param {(eventId: string) => void} shown.onRetry
 * @param {(eventId: string) => void} shown.onDiscard
 */
export function drawPending(root, { outbox, queue, isOpen, onRetry, onDiscard }) {
  const queued = queue.map(({ event_id: id, text }) => ({ id, text, note: 'Queued' }));
  const unsent = outbox.map((entry) => ({
    id: entry.eventId,
    text: entry.text,
    note: noteOf(entry, isOpen),
    error: entry.error,
  }));
  const bubble = (message) => html`<div class="user user-pending">
    <div class="bubble"><span class="bubble-text">${message.text}</span></div>
    <p class="bubble-note">${message.note}</p>
    ${message.error ? html`${errorBox(message.error)} ${choices(message.id, onRetry, onDiscard)}` : nothing}
  </div>`;
  render(repeat([...queued, ...unsent], (message) => message.id, bubble), root);
}

function noteOf({ state }, isOpen) {
  if (state === 'refused') return 'Not sent';
  return isOpen ? 'Sending…' : 'Will be sent when the connection is back';
}

function choices(eventId, onRetry, onDiscard) {
  return html`<p class="bubble-choices">
    <button type="button" class="link" @click=${() => onRetry(eventId)}>Send again</button>
    <button type="button" class="link" @click=${() => onDiscard(eventId)}>Discard</button>
  </p>`;
}
