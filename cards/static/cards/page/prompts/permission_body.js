/** What a tool would do, exactly, and what allowing it for the session covers. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { exactText } from './exact_view.js';
import { textField } from './fields.js';
import { sessionCoverage } from './permission.js';

/** @param {import('./surface.js').PromptView} view */
export function permissionBody({ inner, draft, change }) {
  return html`
    ${permissionAsked(inner, {
      isWhole: draft.isWhole,
      onShowAll: () => change({ ...draft, isWhole: true }),
    })}
    ${coverage(sessionCoverage(inner))}
    ${textField({
      label: 'Remark (optional)',
      value: draft.message,
      onInput: (message) => change({ ...draft, message }),
    })}
  `;
}

/** The call that is asked for. */
export function permissionAsked(inner, shown = { isWhole: true }) {
  const { message, tool_input: input, is_read_only: isReadOnly } = inner;
  return html`
    ${message ? html`<p class="plain-text">${message}</p>` : nothing}
    ${input ? exactText(input, shown) : html`<p class="quiet">Without input.</p>`}
    ${isReadOnly ? html`<p class="quiet">Marked as read only.</p>` : nothing}
  `;
}

function coverage(key) {
  if (!key) return nothing;
  return html`<div class="prompt-coverage">
    <p class="quiet">An allowance for the session covers</p>
    ${exactText(key, { isWhole: true })}
  </div>`;
}
