/** One step of a plan while it is edited. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { fold } from '../cards/card_parts.js';
import { icon } from '../icons.js';
import { textField } from './fields.js';
import { lateNeeds, withFields, withMoved, withoutNeed, withoutStep } from './plan_steps.js';

/**
 * @param {import('./surface.js').PromptView} view
 * @param {import('./plan_steps.js').Step} step
 * @param {number} place From 0.
 */
export function stepEditor(view, step, place) {
  const edit = (steps) => view.change({ ...view.draft, steps });
  const set = (fields) => edit(withFields(view.draft.steps, step.id, fields));
  return html`<li data-step-id=${step.id}>
    <span class="plan-step-id">${step.id}</span>
    <div>
      ${textField({
        label: `What step ${step.id} does`,
        value: step.description,
        onInput: (description) => set({ description }),
      })}
      <div class="plan-step-facts">
        ${agentChoice(view.inner.available_subagents, step, set)}
        ${needList(view, step, place, edit)}
      </div>
      ${step.prompt ? fold('plan-prompt', false, 'Instructions', promptField(step, set)) : nothing}
    </div>
    ${moves(view, step, place, edit)}
  </li>`;
}

function agentChoice(available, { id, subagent_type: chosen = '' }, set) {
  if (!available?.length) return chosen ? html`<span class="tag">${chosen}</span>` : nothing;
  const names = available.includes(chosen) || !chosen ? available : [chosen, ...available];
  return html`<select
    aria-label="Who does step ${id}"
    @change=${(event) => set({ subagent_type: event.target.value || undefined })}
  >
    ${['', ...names].map(
      (name) => html`<option value=${name} .selected=${name === chosen}>${name || 'Anybody'}</option>`,
    )}
  </select>`;
}

function needList({ draft }, { id, depends_on: needs = [] }, place, edit) {
  const late = lateNeeds(draft.steps, place);
  return needs.map(
    (needed) => html`<span class="chip ${late.includes(needed) ? 'is-late' : ''}">
      after ${needed}${late.includes(needed) ? ', which comes later' : ''}
      <button type="button" class="chip-remove" @click=${() => edit(withoutNeed(draft.steps, id, needed))}>
        ${icon('close')}<span class="sr-only">Let ${id} not wait for ${needed}</span>
      </button>
    </span>`,
  );
}

function promptField({ id, prompt }, set) {
  return textField({
    label: `Instructions for step ${id}`,
    value: prompt,
    onInput: (text) => set({ prompt: text }),
  });
}

function moves({ draft }, { id }, place, edit) {
  const isLast = place === draft.steps.length - 1;
  const move = (event, by) => {
    const button = event.currentTarget;
    edit(withMoved(draft.steps, id, by));
    // Moving an element in the document takes the focus from it.
    (button.disabled ? button.parentElement.querySelector(':enabled') : button).focus();
  };
  return html`<div class="plan-step-moves">
    ${moveButton('up', `Move ${id} up`, place === 0, (event) => move(event, -1))}
    ${moveButton('down', `Move ${id} down`, isLast, (event) => move(event, 1))}
    ${moveButton('close', `Remove ${id}`, draft.steps.length === 1, (event) => {
      const list = event.currentTarget.closest('ol');
      edit(withoutStep(draft.steps, id));
      list.querySelectorAll('textarea')[Math.max(0, place - 1)].focus();
    })}
  </div>`;
}

function moveButton(sign, label, isDisabled, onClick) {
  return html`<button type="button" class="icon-button" ?disabled=${isDisabled} @click=${onClick}>
    ${icon(sign)}<span class="sr-only">${label}</span>
  </button>`;
}
