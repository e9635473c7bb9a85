/**
 * How the page stands to the server: connected, reconnecting, offline, signed out.
 *
 * What is said aloud changes with the state only; the seconds are for the eye.
 *
 * @typedef {import('../client/types.js').ConnectionStatus} ConnectionStatus
 */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { formatDuration } from './format.js';

const TICK_MS = 1000;

const WORDS = {
  open: 'Connected',
  connecting: 'Connecting',
  reconnecting: 'Reconnecting',
  offline: 'Offline',
  signed_out: 'Signed out',
  closed: 'Disconnected',
};

export class ConnectionChip {
  #root;
  #onRetry;
  #status;
  #retryAt = 0;
  #ticker = 0;

  /**
   * @param {HTMLElement} root
   * @param {() => void} onRetry
   */
  constructor(root, onRetry) {
    this.#root = root;
    this.#onRetry = onRetry;
  }

  /** @param {ConnectionStatus} status */
  show(status) {
    if (status !== this.#status) this.#retryAt = performance.now() + status.retryInMs;
    this.#status = status;
    clearInterval(this.#ticker);
    if (status.name === 'waiting') this.#ticker = setInterval(() => this.#draw(), TICK_MS);
    this.#draw();
  }

  #draw() {
    const state = stateOf(this.#status);
    this.#root.className = `connection connection-${state}`;
    render(
      html`
        <span class="connection-dot"></span>
        <span class="sr-only" role="status">${WORDS[state]}</span>
        ${state === 'open' ? nothing : html`<span aria-hidden="true">${this.#words(state)}</span>`}
        ${this.#status.name === 'waiting'
          ? html`<button type="button" class="link" @click=${this.#onRetry}>Retry now</button>`
          : nothing}
      `,
      this.#root,
    );
  }

  #words(state) {
    if (state !== 'reconnecting') return state === 'connecting' ? 'Connecting…' : WORDS[state];
    const remainingMs = this.#retryAt - performance.now();
    if (this.#status.name !== 'waiting' || remainingMs < TICK_MS / 2) return 'Reconnecting…';
    return `Reconnecting in ${formatDuration(Math.ceil(remainingMs / TICK_MS) * TICK_MS)}`;
  }
}

function stateOf({ name, attempt }) {
  if (name === 'waiting') return navigator.onLine ? 'reconnecting' : 'offline';
  if (name === 'connecting' && attempt > 0) return 'reconnecting';
  return name;
}
