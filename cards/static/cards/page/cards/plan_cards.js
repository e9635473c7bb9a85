/** Plans, their steps, and the to-do list. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { humanize } from '../format.js';
import { icon } from '../icons.js';
import {
  activity, artifactRef, costLine, duration, fold, furtherArtifactRefs, remarkList,
  statusMark, statusWord, titleOf,
} from './card_parts.js';
import { errorBlock } from './error_box.js';

/** A plan: its goal, how far it is, and a row per step. */
export function planCard(card, view) {
  const { goal, rationale } = card.payload;
  return html`
    ${fold(
      'plan',
      card.hint.initial_state !== 'collapsed',
      planHead(card, view),
      html`
        ${goal ? html`<p class="goal">${goal}</p>` : nothing}
        ${rationale ? html`<p class="quiet plain-text">${rationale}</p>` : nothing}
        <div class="steps">${view.children}${stepsWithoutCard(card, view)}</div>
        ${costLine(card)}
      `,
    )}
    ${activity(card)} ${remarkList(card)} ${errorBlock(card)}
  `;
}

function planHead(card, view) {
  const { strategy } = card.payload;
  return html`${statusMark(card)}
    <span class="head">${icon('plan')}<strong>${titleOf(card)}</strong>
      <span class="intent">${planProgress(card, view)}</span></span>
    ${strategy ? html`<span class="tag">${humanize(strategy)}</span>` : nothing}
    ${statusWord(card)} ${duration(card)}`;
}

function planProgress(card, view) {
  const steps = view.childCards().filter((child) => child.cardKind === 'step');
  const total = Math.max(steps.length, card.payload.steps?.length ?? 0);
  const count = (status) => steps.filter((step) => step.status === status).length;
  const words = [`${count('ok')} of ${total} done`];
  for (const status of ['failed', 'skipped', 'cancelled']) {
    if (count(status)) words.push(`${count(status)} ${status}`);
  }
  return words.join(' · ');
}

/** Steps that the plan lists and no card has opened for yet. */
function stepsWithoutCard(card, view) {
  const opened = new Set(view.childCards().map((child) => child.payload.step_id));
  const missing = (card.payload.steps ?? []).filter((step) => !opened.has(step.step_id));
  return missing.map(
    (step) => html`<div class="step-row">
      <span class="mark mark-waits"></span>
      <span class="head"><strong>${step.user_facing_title ?? step.step_id}</strong></span>
      ${step.subagent_type ? html`<span class="tag">${step.subagent_type}</span>` : nothing}
    </div>`,
  );
}

/** One step: a row, below it who works on it and what came out. */
export function stepCard(card, view) {
  const { payload } = card;
  const planned = plannedStep(card, view);
  return html`
    <div class="step-row">
      ${statusMark(card, { waits: payload.status === 'queued' })}
      <span class="head">
        <strong>${stepTitle(card, planned)}</strong>
        ${planned.depends_on?.length
          ? html`<span class="quiet">after ${planned.depends_on.join(', ')}</span>`
          : nothing}
      </span>
      ${payload.subagent_type ? html`<span class="tag">${payload.subagent_type}</span>` : nothing}
      ${payload.attempts > 1 ? html`<span class="tag">Attempt ${payload.attempts}</span>` : nothing}
      ${statusWord(card)} ${duration(card)}
    </div>
    <div class="step-body ${hasBody(card, planned, view) ? 'is-filled' : ''}">
      ${planned.user_facing_summary
        ? html`<p class="quiet">${planned.user_facing_summary}</p>`
        : nothing}
      ${activity(card)} ${remarkList(card)} ${view.children}
      ${payload.output_summary
        ? html`<div class="summary">${view.prose('summary', payload.output_summary, true)}</div>`
        : nothing}
      ${errorBlock(card)} ${deliverables(payload, view)} ${furtherArtifactRefs(card, view)}
    </div>
  `;
}

function hasBody({ payload, remarks }, planned, view) {
  return Boolean(
    planned.user_facing_summary ||
      payload.output_summary ||
      payload.error ||
      payload.deliverables?.length ||
      remarks.length ||
      view.lastChild(),
  );
}

function plannedStep(card, view) {
  const steps = view.parentCard()?.payload.steps ?? [];
  return steps.find((step) => step.step_id === card.payload.step_id) ?? {};
}

function stepTitle(card, planned) {
  return planned.user_facing_title || card.payload.input_summary || titleOf(card, card.payload.step_id);
}

function deliverables({ deliverables: ids }, view) {
  if (!Array.isArray(ids) || ids.length === 0) return nothing;
  return html`<div class="chips">
    ${ids.map((id) => artifactRef({ artifact_id: id, name: view.artifactName(id) ?? id }))}
  </div>`;
}

const BOX_MARKS = { completed: 'check', cancelled: 'dash' };

/** One entry of the to-do list. */
export function todoCard(card, view) {
  const { subject, status = 'pending', owner, active_form: activeForm } = card.payload;
  const isActive = status === 'in_progress';
  return html`<div class="todo-row todo-${status}">
    <span class="todo-box">${BOX_MARKS[status] ? icon(BOX_MARKS[status]) : nothing}</span>
    <span class="todo-subject">${isActive && activeForm ? activeForm : subject ?? titleOf(card)}</span>
    <span class="sr-only">${humanize(status)}</span>
    ${owner ? html`<span class="tag">${owner}</span>` : nothing}
    ${statusWord(card)} ${errorBlock(card)} ${view.children}
  </div>`;
}
