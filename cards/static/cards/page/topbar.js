/** The line above the conversation: menu, title, model. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { icon } from './icons.js';

/**
 * @param {HTMLElement} root
 * @param {Object} shown
 * @param {string} shown.title
 * @param {string} shown.model
 * @param {() => void} shown.onMenu
 */
export function drawTopbar(root, { title, model, onMenu }) {
  render(
    html`
      <button type="button" class="icon-button menu" @click=${onMenu}>
        ${icon('menu')}<span class="sr-only">Conversations</span>
      </button>
      <h1>${title}</h1>
      ${model ? html`<span class="model">${model}</span>` : nothing}
    `,
    root,
  );
}
