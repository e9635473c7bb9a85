/** A text that is to be judged: every character of it, the rest of a long one on request. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { beginningOf, exactParts } from './exact_text.js';

/**
 * @param {string} text
 * @param {Object} shown
 * @param {boolean} shown.isWhole
 * @param {() => void} [shown.onShowAll]
 */
export function exactText(text, { isWhole, onShowAll }) {
  const visible = isWhole ? text : beginningOf(text);
  const restCount = text.length - visible.length;
  return html`<div class="exact">
    <pre tabindex="0">${exactParts(visible).map(part)}${restCount > 0 ? '…' : nothing}</pre>
    ${restCount > 0
      ? html`<button type="button" class="link" @click=${onShowAll}>
          Show all (${restCount.toLocaleString()} more characters)
        </button>`
      : nothing}
  </div>`;
}

function part({ text, isSign }) {
  return isSign ? html`<span class="exact-sign" title="A character that is not seen">${text}</span>` : text;
}
