/** What failed and why, in the server's words. Spec: EMIT 7.1. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { textField } from './fields.js';

/** @param {import('./surface.js').PromptView} view */
export function stepDecisionBody({ inner, draft, change }) {
  return html`
    ${stepDecisionAsked(inner)}
    ${textField({
      label: 'Remark (optional)',
      value: draft.note,
      onInput: (note) => change({ ...draft, note }),
    })}
  `;
}

/** The failure. */
export function stepDecisionAsked({ step_description: description, reason, attempts }) {
  return html`
    ${description ? html`<p class="plain-text">${description}</p>` : nothing}
    <p class="plain-text prompt-reason">${reason}</p>
    ${attempts ? html`<p class="quiet">Tried ${attempts === 1 ? 'once' : `${attempts} times`}.</p>` : nothing}
  `;
}
