/** A question's choices and the field for the user's own words. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { textField } from './fields.js';
import { excludesWords, labelsOf, withChoice, withOwn, withWords } from './question.js';

const OWN_WORDS = 'In your own words';

/** @param {import('./surface.js').PromptView} view */
export function questionBody(view) {
  const { id, inner } = view;
  return html`<fieldset class="options">
    <legend class="plain-text" id="${id}-subject">${inner.question}</legend>
    ${labelsOf(inner).map((label) => option(view, label))}
    ${inner.allow_custom ? ownWords(view) : nothing}
  </fieldset>`;
}

/** The question as it was asked. */
export function questionAsked(inner) {
  const labels = labelsOf(inner);
  return html`
    <p class="plain-text">${inner.question}</p>
    ${labels.length
      ? html`<ul class="plain-list">${labels.map((label) => html`<li>${label}</li>`)}</ul>`
      : nothing}
  `;
}

function option({ id, inner, draft, change }, label) {
  return html`<label class="option">
    <input
      type=${inner.multi ? 'checkbox' : 'radio'}
      name="${id}-option"
      .checked=${draft.selected.includes(label)}
      @change=${(event) => change(withChoice(inner, draft, label, event.target.checked))}
    />
    <span class="plain-text">${label}</span>
  </label>`;
}

function ownWords(view) {
  const { inner, draft, change } = view;
  const field = textField({
    label: labelsOf(inner).length ? OWN_WORDS : 'Your answer',
    value: draft.words,
    onInput: (words) => change(withWords(inner, draft, words)),
    isSubmitting: true,
  });
  return excludesWords(inner) ? html`<div class="option-own">${ownOption(view)} ${field}</div>` : field;
}

/** The radio button that means the field beside it. */
function ownOption({ id, inner, draft, change }) {
  return html`<label class="option">
    <input
      type="radio"
      name="${id}-option"
      .checked=${draft.isOwn}
      @change=${() => change(withOwn(inner, draft))}
    />
    <span>Other</span>
  </label>`;
}
