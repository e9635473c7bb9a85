/** A plan to be reviewed: its goal, and its steps to read or to edit. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { repeat } from '../../vendor/lit-html/directives/repeat.js';
import { fold } from '../cards/card_parts.js';
import { icon } from '../icons.js';
import { textField } from './fields.js';
import { stepEditor } from './plan_step_editor.js';
import { updatedSteps, withNewStep } from './plan_steps.js';

/** @param {import('./surface.js').PromptView} view */
export function planBody(view) {
  const { id, inner, draft, change } = view;
  return html`
    ${rejection(inner.rejection_reason)} ${purpose(inner, `${id}-subject`)}
    ${draft.isEditing ? editor(view) : stepList(draft.steps)} ${tools(view)}
    ${textField({
      label: 'Reason, if you decline (optional)',
      value: draft.reason,
      onInput: (reason) => change({ ...draft, reason }),
    })}
  `;
}

/** The plan as it was proposed. */
export function planAsked(inner) {
  return html`${rejection(inner.rejection_reason)} ${purpose(inner)} ${stepList(inner.steps ?? [])}`;
}

function rejection(reason) {
  if (!reason) return nothing;
  return html`<p class="prompt-hint">
    ${icon('alert')}<span>Your changes could not be carried out: ${reason}</span>
  </p>`;
}

function purpose({ goal, rationale }, id = nothing) {
  return html`
    <p class="goal plain-text" id=${id}>${goal}</p>
    ${rationale ? html`<p class="quiet plain-text">${rationale}</p>` : nothing}
  `;
}

function stepList(steps) {
  return html`<ol class="plan-steps">${steps.map(stepRow)}</ol>`;
}

function stepRow({ id, description, subagent_type: agent, prompt, depends_on: needs }) {
  return html`<li>
    <span class="plan-step-id">${id}</span>
    <div>
      <span class="plain-text">${description}</span>
      ${agent ? html`<span class="tag">${agent}</span>` : nothing}
      ${needs?.length ? html`<span class="quiet">after ${needs.join(', ')}</span>` : nothing}
      ${prompt ? fold('plan-prompt', false, 'Instructions', html`<p class="plain-text">${prompt}</p>`) : nothing}
    </div>
  </li>`;
}

function editor(view) {
  const { steps } = view.draft;
  return html`<ol class="plan-steps is-editing">
    ${repeat(steps, (step) => step.id, (step, place) => stepEditor(view, step, place))}
  </ol>`;
}

function tools(view) {
  const { inner, draft, change } = view;
  const isChanged = updatedSteps(draft.steps, inner.steps ?? []) !== undefined;
  return html`<div class="plan-tools">
    ${draft.isEditing
      ? html`<button type="button" class="link" @click=${(event) => addStep(view, event)}>Add a step</button>`
      : nothing}
    <button type="button" class="link" @click=${() => change({ ...draft, isEditing: !draft.isEditing })}>
      ${draft.isEditing ? 'End editing' : 'Edit steps'}
    </button>
    ${isChanged
      ? html`<button type="button" class="link" @click=${() => change({ ...draft, steps: inner.steps })}>
          Undo all changes
        </button>`
      : nothing}
  </div>`;
}

function addStep({ inner, draft, change }, event) {
  const surface = event.currentTarget.closest('.prompt');
  change({ ...draft, steps: withNewStep(draft.steps, inner.steps ?? []) });
  surface.querySelector('.plan-steps > li:last-child textarea').focus();
}
