/** The line above the conversation: menu, title, model, state of the connection. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { formatDuration } from './format.js';
import { icon } from './icons.js';

/**
 * @param {HTMLElement} root
 * @param {Object} shown
 * @param {string} shown.title
 * @param {string} shown.model
 * @param {import('../client/types.js').ConnectionStatus} shown.status
 * @param {() => void} shown.onMenu
 * @param {() => void} shown.onRetry
 */
export function drawTopbar(root, { title, model, status, onMenu, onRetry }) {
  render(
    html`
      <button type="button" class="icon-button menu" @click=${onMenu}>
        ${icon('menu')}<span class="sr-only">Conversations</span>
      </button>
      <h1>${title}</h1>
      ${model ? html`<span class="model">${model}</span>` : nothing}
      <div class="connection connection-${status.name}" role="status">
        <span class="connection-dot"></span>
        ${status.name === 'open'
          ? html`<span class="sr-only">Connected</span>`
          : html`<span>${statusWords(status)}</span>`}
        ${status.name === 'waiting'
          ? html`<button type="button" class="link" @click=${onRetry}>Retry now</button>`
          : nothing}
      </div>
    `,
    root,
  );
}

function statusWords({ name, retryInMs, attempt }) {
  if (name === 'connecting') return attempt > 0 ? 'Reconnecting…' : 'Connecting…';
  if (name === 'closed') return 'Disconnected';
  return `Offline, trying again in ${formatDuration(Math.max(1000, retryInMs))}`;
}
