/**
 * Lines in the timeline: that something was asked there, and how that ended.
 *
 * @typedef {import('../../client/types.js').Answer} Answer
 * @typedef {import('../../client/types.js').Prompt} Prompt
 */

import { html, render } from '../../vendor/lit-html/lit-html.js';
import { fold } from '../cards/card_parts.js';
import { icon } from '../icons.js';
import { bodyOf } from './bodies.js';
import { kindOf } from './kinds.js';
import { outcomeIcon, outcomeWords } from './outcome.js';

export class PromptLines {
  #timeline;
  #lines = new Map();
  #shown = {};

  /** @param {import('../timeline.js').Timeline} timeline Knows where cards stand. */
  constructor(timeline) {
    this.#timeline = timeline;
  }

  /**
   * Show prompts; the cards before them must be drawn.
   * @param {Map<string, Prompt>} prompts
   * @param {Map<string, Answer>} answers The user's own.
   */
  show(prompts, answers) {
    if (prompts === this.#shown.prompts && answers === this.#shown.answers) return;
    this.#shown = { prompts, answers };
    for (const prompt of prompts.values()) {
      const answer = answers.get(prompt.requestId);
      const line = this.#lines.get(prompt.requestId) ?? this.#add(prompt);
      if (line.prompt === prompt && line.answer === answer) continue;
      Object.assign(line, { prompt, answer });
      render(prompt.outcome ? settled(prompt, answer) : waiting(prompt), line.element);
    }
    this.#removeAllBut(prompts);
  }

  /** Forget all lines, as when the timeline is emptied. */
  clear() {
    this.#lines.clear();
    this.#shown = {};
  }

  #add(prompt) {
    const element = document.createElement('div');
    element.className = 'prompt-line';
    element.dataset.seq = prompt.seq;
    this.#timeline.place(element, prompt);
    const line = { element };
    this.#lines.set(prompt.requestId, line);
    return line;
  }

  /** Of what a snapshot does not list nothing is known. */
  #removeAllBut(prompts) {
    for (const [requestId, { element }] of this.#lines) {
      if (prompts.has(requestId)) continue;
      element.remove();
      this.#lines.delete(requestId);
    }
  }
}

function waiting(prompt) {
  return html`<p class="prompt-line-open">
    ${icon(kindOf(prompt.kind).icon)} ${words(prompt, html`<span class="quiet">Waiting for your answer</span>`)}
  </p>`;
}

function settled(prompt, answer) {
  return fold(
    'prompt-outcome',
    false,
    html`${icon(outcomeIcon(prompt))}
    ${words(prompt, html`<strong>${outcomeWords(prompt, answer)}</strong>`)}`,
    bodyOf(prompt.kind).asked(prompt.inner),
  );
}

function words({ kind, inner }, state) {
  return html`<span class="prompt-words">
    <span class="prompt-subject">${kindOf(kind).subject(inner)}</span>${state}
  </span>`;
}
