/**
 * One open prompt: who asks what, and how it can be answered.
 *
 * @typedef {import('../../client/types.js').Answer} Answer
 * @typedef {import('../../client/types.js').Prompt} Prompt
 *
 * @typedef {Object} PromptView What a body is drawn from.
 * @property {string} id Unique in the document; ids of elements begin with it.
 * @property {Object<string, any>} inner What is asked.
 * @property {Object<string, any>} draft What was entered so far.
 * @property {(draft: Object<string, any>) => void} change Draws at once.
 */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { errorBox } from '../cards/error_box.js';
import { icon } from '../icons.js';
import { bodyOf } from './bodies.js';
import { kindOf } from './kinds.js';
import { ageHint, timeLeft } from './times.js';

/**
 * @param {Object} shown
 * @param {Prompt} shown.prompt
 * @param {Object<string, any>} shown.draft
 * @param {Answer} [shown.answer] Its own, under way or refused.
 * @param {string} shown.askedBy Title of the sub-agent; empty for the assistant.
 * @param {boolean} shown.isOpen Whether the connection is there.
 * @param {number} shown.nowMs The server's time.
 * @param {(draft: Object<string, any>) => void} shown.onChange
 * @param {(choice: import('./kinds.js').Choice) => void} shown.onChoose
 * @param {() => void} shown.onTakeBack
 */
export function surface(shown) {
  const { prompt, draft, answer, onChange, onChoose } = shown;
  const id = `prompt-${prompt.seq}`;
  const choices = kindOf(prompt.kind).choices(prompt.inner, draft);
  const isUnderWay = answer !== undefined && answer.state !== 'refused';
  const submit = (event) => {
    event.preventDefault();
    const choice = choices.find((each) => each.isDefault && each.isReady);
    if (choice && !isUnderWay) onChoose(choice);
  };
  return html`<section
    class="prompt"
    role="group"
    tabindex="-1"
    aria-labelledby="${id}-title ${id}-subject"
    data-request-id=${prompt.requestId}
    data-prompt-kind=${prompt.kind}
  >
    <form novalidate @submit=${submit}>
      <fieldset class="prompt-form" ?disabled=${isUnderWay} aria-labelledby="${id}-title">
        ${head(id, shown)}
        <div class="prompt-body">
          ${hint(ageHint(prompt, shown.nowMs))}
          ${bodyOf(prompt.kind).ask({ id, inner: prompt.inner, draft, change: onChange })}
        </div>
        <div class="prompt-choices">
          ${choices.map((choice, place) => choiceButton(choice, `${id}-note-${place}`, onChoose))}
        </div>
      </fieldset>
    </form>
    ${answer ? progress(answer, shown) : nothing}
  </section>`;
}

function head(id, { prompt, askedBy, nowMs }) {
  const { icon: sign, title } = kindOf(prompt.kind);
  const left = timeLeft(prompt, nowMs);
  return html`<div class="prompt-head">
    ${icon(sign)}
    <h2 id="${id}-title">${title(prompt.inner)}</h2>
    ${askedBy ? html`<span class="tag">${askedBy}</span>` : nothing}
    ${left ? html`<span class="quiet prompt-time">${left}</span>` : nothing}
  </div>`;
}

function hint(words) {
  if (!words) return nothing;
  return html`<p class="prompt-hint">${icon('clock')}<span>${words}</span></p>`;
}

function choiceButton(choice, noteId, onChoose) {
  const { label, note, look, isReady, isDefault } = choice;
  return html`<button
    type=${isDefault ? 'submit' : 'button'}
    class="button choice-${look}"
    aria-describedby=${note ? noteId : nothing}
    ?disabled=${!isReady}
    @click=${isDefault ? nothing : () => onChoose(choice)}
  >
    <span>${label}</span>
    ${note ? html`<span class="choice-note" id=${noteId} aria-hidden="true">${note}</span>` : nothing}
  </button>`;
}

function progress({ state, error }, { isOpen, onTakeBack }) {
  if (state === 'refused') return html`<div role="alert">${errorBox(error)}</div>`;
  if (isOpen) return html`<p class="prompt-progress">Sending…</p>`;
  return html`<p class="prompt-progress">
    Will be sent when the connection is back.
    <button type="button" class="link" @click=${onTakeBack}>Change</button>
  </p>`;
}
