/**
 * What is said: turns, messages, thinking.
 *
 * A template gets the card and its view and draws the whole card; `view.children`
 * is the element that holds the cards below it.
 */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { channelText } from '../../client/index.js';
import { shownName } from '../artifacts/names.js';
import { formatClock, formatCount, humanize } from '../format.js';
import {
  activity, artifactRef, fold, isRunning, metricsLine, remarkList, statusMark, statusWord, titleOf,
} from './card_parts.js';
import { brokeOff, errorBlock, turnError } from './error_box.js';

/** A round of the conversation: the user's words, what followed, how it ended. */
export function turnCard(card, view) {
  return html`
    ${userWords(card)}
    <div class="answer">
      ${remarkList(card)} ${view.children}
      ${isRunning(card) ? working(view) : nothing}
      ${activity(card)} ${turnError(card)} ${turnFoot(card)}
    </div>
  `;
}

function userWords(card) {
  const { input } = card.payload;
  if (!input) return nothing;
  const others = (input.content ?? []).filter((block) => block.type !== 'text');
  return html`<div class="user">
    <div class="bubble">
      <span class="sr-only">You said: </span>${input.text || !others.length
        ? html`<span class="bubble-text">${input.text || card.hint.summary || ''}</span>`
        : nothing}
      ${others.length
        ? html`<div class="chips">${others.map(attachment)}</div>`
        : nothing}
    </div>
  </div>`;
}

/** A file of the user, or what else came with the words. */
export function attachment({ type, name, source }) {
  if (source?.type === 'artifact') return artifactRef({ ...source, name: source.name ?? name });
  const known = name ?? source?.name ?? source?.path;
  return html`<span class="chip">${humanize(type)}${known ? `: ${shownName(known)}` : ''}</span>`;
}

/** The style sheet picks the words: what is known depends on the connection. */
function working(view) {
  return html`<p class="working ${isSpeaking(view) ? 'is-speaking' : ''}">
    <span class="working-dot"></span>
    <span class="working-known">Working</span>
    <span class="working-reconnecting">Reconnecting. Whether this goes on is not known yet.</span>
    <span class="working-unknown">Disconnected. Whether this goes on is not known.</span>
  </p>`;
}

/** The word "Working" would repeat what a growing message shows already. */
function isSpeaking(view) {
  const last = view.lastChild();
  return Boolean(last && last.status === 'open' && last.channels.size > 0);
}

function turnFoot(card) {
  if (card.status === 'open') return nothing;
  const clock = formatClock(card.updatedAt);
  return html`<div class="turn-foot">
    ${card.status === 'ok' ? nothing : statusMark(card)}${statusWord(card)}${metricsLine(card)}
    ${clock ? html`<time datetime=${card.updatedAt}>${clock}</time>` : nothing}
  </div>`;
}

const STOP_REASONS = {
  max_tokens: 'The reply was cut at the length limit.',
  error: 'The reply broke off because of an error.',
};

/** One reply, growing while it is written. */
export function messageCard(card, view) {
  const text = channelText(card, 'text');
  const stopped = STOP_REASONS[card.payload.stop_reason];
  return html`
    ${messageThinking(card, view)}
    ${text ? view.prose('text', text, card.status !== 'open') : nothing}
    ${isRunning(card) && !text ? html`<p class="caret-alone"><span class="sr-only">Writing</span></p>` : nothing}
    ${toolInput(card, view)}
    ${stopped ? html`<p class="aside">${stopped}</p>` : nothing}
    ${remarkList(card)} ${errorBlock(card)}
    ${card.status === 'cancelled' ? html`<p class="aside">Stopped here.</p>` : nothing}
    ${brokeOff(card) ? html`<p class="aside">Broke off here.</p>` : nothing}
    ${card.status === 'failed' && !card.payload.error ? html`<p class="aside">${statusWord(card)}</p>` : nothing}
    ${view.children}
  `;
}

function messageThinking(card, view) {
  const text = channelText(card, 'thinking');
  if (!text) return nothing;
  return thinkingFold('Thinking', view.prose('thinking', text, card.status !== 'open'));
}

/** The call as it is being written; once its tool card is there, that shows it. */
function toolInput(card, view) {
  const text = channelText(card, 'tool_input');
  const isTaken = card.status !== 'open' && view.hasChildOfKind('tool');
  if (!text || isTaken) return nothing;
  const summary = isRunning(card) ? 'Preparing a tool call' : 'Tool call that was not made';
  return fold('tool-input', false, summary, html`<pre class="raw" tabindex="0">${text}</pre>`);
}

/** Extended thinking, folded away. */
export function thinkingCard(card, view) {
  const text = channelText(card, 'thinking') || channelText(card, 'text');
  const { length } = card.payload;
  const summary = html`<span class="thinking-title ${isRunning(card) ? 'shimmer' : ''}"
      >${isRunning(card) ? 'Thinking…' : titleOf(card)}</span
    >
    ${length ? html`<span class="quiet">${formatCount(length)} characters</span>` : nothing}
    ${statusWord(card)}`;
  return html`
    ${thinkingFold(summary, text ? view.prose('thinking', text, card.status !== 'open') : nothing)}
    ${errorBlock(card)} ${view.children}
  `;
}

function thinkingFold(summary, body) {
  return fold('thinking', false, summary, body);
}
