/** The user's messages that begin a turn and have none yet: on their way, or refused. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { repeat } from '../vendor/lit-html/directives/repeat.js';
import { errorBox } from './cards/error_box.js';
import { attachment } from './cards/talk_cards.js';

/**
 * @param {HTMLElement} root
 * @param {Object} shown
 * @param {import('../client/types.js').OutboxEntry[]} shown.entries
 * @param {boolean} shown.isOpen Whether the connection is there.
 * @param {(eventId: string) => void} shown.onRetry
 * @param {(eventId: string) => void} shown.onDiscard
 */
export function drawPending(root, { entries, isOpen, onRetry, onDiscard }) {
  const bubble = (entry) => html`<div class="user user-pending">
    <div class="bubble">
      ${entry.text ? html`<span class="bubble-text">${entry.text}</span>` : nothing}
      ${files(entry)}
    </div>
    <p class="bubble-note">${noteOf(entry, isOpen)}</p>
    ${entry.error
      ? html`${errorBox(entry.error)} ${choices(entry.eventId, onRetry, onDiscard)}`
      : nothing}
  </div>`;
  render(repeat(entries, (entry) => entry.eventId, bubble), root);
}

function files({ frame }) {
  const blocks = frame.content.filter((block) => block.type !== 'text');
  return blocks.length > 0 ? html`<div class="chips">${blocks.map(attachment)}</div>` : nothing;
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
