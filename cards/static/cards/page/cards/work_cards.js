/** What is done: tools and sub-agents. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { humanize } from '../format.js';
import { icon } from '../icons.js';
import {
  activity, artifactRefs, costLine, duration, fact, fold, furtherArtifactRefs, isRunning,
  remarkList, statusMark, statusWord, titleOf,
} from './card_parts.js';
import { errorBlock } from './error_box.js';
import { briefInput, toolInputView, toolOutputView } from './tool_output.js';

/** A tool call: one line, and behind it what went in and what came out. */
export function toolCard(card, view) {
  const isOpen = opensAtFirst(card);
  const body = isOpen || view.isFilled('tool') ? toolBody(card, view) : nothing;
  return html`
    ${fold('tool', isOpen, toolHead(card), body, (event) => view.fill('tool', event))}
    ${activity(card)} ${remarkList(card)} ${errorBlock(card)}
    ${furtherArtifactRefs(card, view)} ${view.children}
  `;
}

function opensAtFirst(card) {
  return card.hint.initial_state === 'expanded';
}

function toolHead(card) {
  const intent = card.latest.intent?.inner.intent ?? card.payload.intent;
  const brief = briefInput(card.payload);
  return html`${statusMark(card)}
    <span class="head">
      <strong>${titleOf(card, card.payload.name)}</strong>
      ${intent ? html`<span class="intent ${isRunning(card) ? 'shimmer' : ''}">${intent}</span>` : nothing}
      ${brief ? html`<code class="brief">${brief}</code>` : nothing}
    </span>
    ${card.payload.target === 'client' ? html`<span class="tag">on your device</span>` : nothing}
    ${phase(card)} ${statusWord(card)} ${duration(card)}`;
}

/** Only a phase that needs words: that a running tool runs is seen. */
function phase(card) {
  if (!isRunning(card)) return nothing;
  const text = card.payload.phase_hint ?? (card.payload.phase === 'permission_wait' ? 'Waiting for you' : '');
  return text ? html`<span class="quiet">${text}</span>` : nothing;
}

function toolBody(card, view) {
  const { payload } = card;
  return html`
    ${toolInputView(payload, view)} ${toolOutputView(payload, view)}
    ${isEmpty(payload) ? html`<p class="quiet">${isRunning(card) ? 'No output yet.' : 'No input and no output.'}</p>` : nothing}
    ${more(card)}
  `;
}

function isEmpty({ input, output }) {
  return input === undefined && output === undefined;
}

function more(card) {
  const { metadata, details, file_path: path, language } = card.payload;
  const metrics = costLine(card);
  const more = isRecord(metadata) ? metadata : { more: metadata };
  const facts = Object.entries({ file: path, language, details, ...more }).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  );
  return html`${facts.length
      ? html`<dl class="facts">${facts.map(([name, value]) => fact(humanize(name), value))}</dl>`
      : nothing}
    ${metrics}`;
}

function isRecord(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A sub-agent: what it was asked, what it does, what it says in the end. */
export function agentCard(card, view) {
  const { payload } = card;
  return html`
    ${fold(
      'agent',
      card.hint.initial_state !== 'collapsed',
      agentHead(card),
      html`
        ${payload.task_prompt
          ? fold('task', false, 'Task', html`<p class="plain-text">${payload.task_prompt}</p>`)
          : nothing}
        ${view.children}
        ${payload.output_summary
          ? html`<div class="summary">${view.prose('summary', payload.output_summary, true)}</div>`
          : nothing}
        ${agentFacts(card)}
      `,
    )}
    ${activity(card)} ${remarkList(card)} ${errorBlock(card)}
    ${artifactRefs(payload.artifacts)}
  `;
}

function agentHead(card) {
  const { payload, hint } = card;
  const intent = card.latest.intent?.inner.intent ?? hint.summary;
  return html`${statusMark(card)}
    <span class="head">
      ${icon('agent')}<strong>${titleOf(card, payload.name)}</strong>
      ${intent ? html`<span class="intent ${isRunning(card) ? 'shimmer' : ''}">${intent}</span>` : nothing}
    </span>
    ${payload.subagent_type && payload.subagent_type !== payload.name
      ? html`<span class="tag">${humanize(payload.subagent_type)}</span>`
      : nothing}
    ${payload.agent_type === 'async' ? html`<span class="tag">in the background</span>` : nothing}
    ${statusWord(card)} ${duration(card)}`;
}

function agentFacts(card) {
  const { num_turns: turns, denied_tools: denied } = card.payload;
  const words = [
    turns ? `${turns} ${turns === 1 ? 'round' : 'rounds'}` : '',
    denied?.length ? `Not allowed: ${denied.join(', ')}` : '',
  ].filter(Boolean);
  const metrics = costLine(card);
  if (!words.length && metrics === nothing) return nothing;
  return html`<p class="quiet agent-facts">
    ${words.map((word) => html`<span>${word}</span>`)}${metrics}
  </p>`;
}
