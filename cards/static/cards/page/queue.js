/** The messages that wait behind the running turn, above the field. Spec: Ruling E9. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { repeat } from '../vendor/lit-html/directives/repeat.js';
import { icon } from './icons.js';

/** A message without words. */
const FILES_ONLY = 'Attached files';

/**
 * @param {HTMLElement} root
 * @param {Object} shown
 * @param {import('./work.js').Work} shown.work
 * @param {boolean} shown.isOpen Whether the connection is there.
 * @param {() => void} shown.onClear
 */
export function drawQueue(root, { work, isOpen, onClear }) {
  const queued = work.queue.map(({ event_id: id, text }) => ({ id, text: text || FILES_ONLY, note: 'Queued' }));
  const note = isOpen ? 'Sending…' : 'Not sent yet';
  const following = work.following.map(({ eventId: id, text }) => ({ id, text: text || FILES_ONLY, note }));
  const messages = [...queued, ...following];
  render(messages.length > 0 ? tray(messages, queued.length > 0, work, onClear) : nothing, root);
}

function tray(messages, canClear, { isClearing }, onClear) {
  return html`<section class="queue-tray" aria-label="Queued messages">
    <div class="queue-head">
      ${icon('clock')}<span role="status">${headline(messages.length)}</span>
      ${canClear
        ? html`<button
            type="button"
            class="link queue-clear"
            aria-pressed=${isClearing ? 'true' : 'false'}
            @click=${onClear}
          >
            Stop and clear queue
          </button>`
        : nothing}
    </div>
    <ol>
      ${repeat(messages, (message) => message.id, row)}
    </ol>
  </section>`;
}

function headline(count) {
  return count === 1 ? '1 message waits' : `${count} messages wait`;
}

function row({ id, text, note }, index) {
  return html`<li data-event-id=${id}>
    <span class="queue-number" aria-hidden="true">${index + 1}</span>
    <span class="queue-text" title=${text}>${text}</span>
    <span class="queue-note">${note}</span>
  </li>`;
}
