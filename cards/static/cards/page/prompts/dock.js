/**
 * The open prompts, above the message field, oldest first.
 *
 * They never take the focus from where the user types; Alt+P goes to them. Escape does
 * nothing here: it must not decide anything.
 *
 * Spec: EMIT 2.4.4, 7.1; Rulings E15, E26.
 *
 * @typedef {import('../../client/types.js').Answer} Answer
 * @typedef {import('../../client/types.js').Prompt} Prompt
 * @typedef {import('../../client/types.js').SessionState} SessionState
 */

import { html, nothing, render } from '../../vendor/lit-html/lit-html.js';
import { repeat } from '../../vendor/lit-html/directives/repeat.js';
import { openPrompts } from '../../client/index.js';
import { titleOf } from '../cards/card_parts.js';
import { PromptDrafts } from './drafts.js';
import { kindOf } from './kinds.js';
import { outcomeWords } from './outcome.js';
import { surface } from './surface.js';

/** How often the words about age and time left are looked at, in ms. */
const TICK_MS = 15_000;

/** Buttons that appear or move under a pointer take no click for this long, in ms. */
const SETTLE_MS = 400;

/** @type {{state: SessionState|null, answers: Map<string, Answer>, isOpen: boolean}} */
const NOTHING = { state: null, answers: new Map(), isOpen: false };

export class PromptDock {
  #root;
  #handlers;
  #shown = NOTHING;
  #open = [];
  #drafts = new PromptDrafts();
  #settling = 0;
  #ticker = 0;

  /**
   * @param {HTMLElement} root
   * @param {Object} handlers
   * @param {(requestId: string, decision: string, payload: Object) => void} handlers.onAnswer
   * @param {(requestId: string) => void} handlers.onTakeBack
   * @param {() => void} handlers.onLeave The focus has nowhere to be here any more.
   * @param {(text: string) => void} handlers.say Aloud.
   * @param {() => number} handlers.now The server's time, in ms.
   */
  constructor(root, handlers) {
    this.#root = root;
    this.#handlers = handlers;
    document.addEventListener('keydown', (event) => {
      if (isJumpKey(event) && this.#open.length > 0) this.#jump(event);
    });
  }

  /** How many prompts wait. */
  get count() {
    return this.#open.length;
  }

  /**
   * Show what is open.
   * @param {SessionState} state
   * @param {Map<string, Answer>} answers The user's own.
   * @param {boolean} isOpen Whether the connection is there.
   */
  show(state, answers, isOpen) {
    const { state: last, answers: lastAnswers, isOpen: wasOpen } = this.#shown;
    const isSame = state.prompts === last?.prompts && answers === lastAnswers && isOpen === wasOpen;
    if (isSame) return;
    const before = this.#open;
    this.#shown = { state, answers, isOpen };
    this.#open = openPrompts(state);
    const isOther = (one, other) => one.requestId !== other?.requestId;
    const hasMoved =
      before.length !== this.#open.length || before.some((each, i) => isOther(each, this.#open[i]));
    if (hasMoved) this.#settle();
    this.#drawKeepingFocus();
    if (hasMoved) this.#tellChanges(before);
    this.#keepTicking();
  }

  /** Show nothing, as between two sessions; what was entered is kept. */
  clear() {
    this.#shown = NOTHING;
    this.#open = [];
    this.#draw();
    this.#keepTicking();
  }

  #tellChanges(before) {
    const known = new Set(before.map((prompt) => prompt.requestId));
    const fresh = this.#open.filter((prompt) => !known.has(prompt.requestId));
    for (const { requestId } of before) {
      const prompt = this.#shown.state.prompts.get(requestId);
      if (prompt?.outcome !== null) this.#tellSettled(requestId, prompt);
    }
    if (fresh.length > 0) this.#handlers.say(announcement(fresh));
  }

  #tellSettled(requestId, prompt) {
    this.#drafts.forget(requestId);
    if (prompt) this.#handlers.say(outcomeWords(prompt, this.#shown.answers.get(requestId)));
  }

  #settle() {
    clearTimeout(this.#settling);
    this.#root.classList.add('is-settling');
    this.#settling = setTimeout(() => this.#root.classList.remove('is-settling'), SETTLE_MS);
  }

  #keepTicking() {
    clearInterval(this.#ticker);
    if (this.#open.length > 0) this.#ticker = setInterval(() => this.#draw(), TICK_MS);
  }

  /** To the first prompt, from each to the next one, and from the last one back. */
  #jump(event) {
    event.preventDefault();
    const surfaces = [...this.#root.querySelectorAll('.prompt')];
    const next = surfaces[surfaces.indexOf(event.target.closest?.('.prompt')) + 1];
    if (next) next.focus();
    else this.#handlers.onLeave();
  }

  #drawKeepingFocus() {
    const focused = document.activeElement.closest('.prompt');
    this.#draw();
    if (!focused) return;
    const { activeElement } = document;
    // A control that is disabled loses the focus to nowhere, now or a little later.
    if (focused.contains(activeElement) && !activeElement.matches(':disabled')) return;
    const next = focused.isConnected ? focused : this.#root.querySelector('.prompt');
    if (next) next.focus();
    else this.#handlers.onLeave();
  }

  #draw() {
    this.#root.hidden = this.#open.length === 0;
    const stack = html`<p class="prompts-head">
        <span>${headline(this.#open.length)}</span>
        <span class="prompts-key"><kbd>Alt</kbd> + <kbd>P</kbd> goes there</span>
      </p>
      ${repeat(this.#open, (prompt) => prompt.requestId, (prompt) => this.#surface(prompt))}`;
    render(this.#open.length > 0 ? stack : nothing, this.#root);
  }

  #surface(prompt) {
    const { requestId } = prompt;
    const { state, answers, isOpen } = this.#shown;
    return surface({
      prompt,
      draft: this.#drafts.of(prompt, state.prompts),
      answer: answers.get(requestId),
      askedBy: askerOf(state, prompt),
      isOpen,
      nowMs: this.#handlers.now(),
      onChange: (draft) => this.#change(requestId, draft),
      onChoose: ({ decision, payload }) => this.#choose(requestId, decision, payload),
      onTakeBack: () => this.#handlers.onTakeBack(requestId),
    });
  }

  #change(requestId, draft) {
    this.#drafts.set(requestId, draft);
    this.#draw();
  }

  #choose(requestId, decision, payload) {
    this.#handlers.onAnswer(requestId, decision, payload);
    if (!this.#shown.isOpen) this.#handlers.say('Will be sent when the connection is back.');
  }
}

function isJumpKey({ altKey, ctrlKey, metaKey, shiftKey, code, isComposing }) {
  return altKey && code === 'KeyP' && !ctrlKey && !metaKey && !shiftKey && !isComposing;
}

function headline(count) {
  return count === 1 ? 'Waiting for your answer' : `${count} questions wait for your answer`;
}

function announcement(prompts) {
  const [{ kind, inner }] = prompts;
  if (prompts.length > 1) return `${headline(prompts.length)} – Alt P goes there.`;
  const { title, subject } = kindOf(kind);
  const [what, whereof] = [title(inner), subject(inner)];
  return `${what.includes(whereof) ? what : `${what}: ${whereof}`} – Alt P goes there.`;
}

/** The title of the sub-agent that asks; empty for the assistant itself. */
function askerOf({ cards }, { agentId }) {
  const card = cards.get(agentId);
  return card?.cardKind === 'agent' ? titleOf(card, card.payload.name) : '';
}
