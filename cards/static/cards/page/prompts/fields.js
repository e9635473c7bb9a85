/** Fields for the user's own words, as several kinds of prompts have them. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';

/** Longer texts are refused by the server. */
const MAX_CHARS = 100_000;

/**
 * @param {Object} field
 * @param {string} field.label
 * @param {string} field.value
 * @param {(value: string) => void} field.onInput
 * @param {boolean} [field.isSubmitting] Enter sends the form, as in the message field.
 * @param {string} [field.className]
 */
export function textField({ label, value, onInput, isSubmitting = false, className = '' }) {
  return html`<textarea
    class="prompt-field ${className}"
    rows="1"
    maxlength=${MAX_CHARS}
    aria-label=${label}
    placeholder=${label}
    .value=${value}
    @input=${(event) => onInput(event.target.value)}
    @keydown=${isSubmitting ? submitOnEnter : nothing}
  ></textarea>`;
}

function submitOnEnter(event) {
  // While an input method composes, Enter picks a candidate.
  if (event.isComposing || event.keyCode === 229) return;
  if (event.key !== 'Enter' || event.shiftKey) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}
