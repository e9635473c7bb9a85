/**
 * What cards of several kinds are made of.
 *
 * @typedef {import('../../client/types.js').Card} Card
 * @typedef {import('../card_view.js').CardView} CardView
 */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { picture } from '../attachments/tray.js';
import { isArtifactId, shownName } from '../artifacts/names.js';
import { asText, formatDuration, humanize, metricParts } from '../format.js';
import { icon } from '../icons.js';

/** Kinds that are closed one day; `open` means running for these only. */
const TRACKED_KINDS = new Set([
  'turn', 'message', 'tool', 'agent', 'plan', 'step', 'thinking',
]);

const MARKS = {
  ok: { icon: 'check', label: 'Done' },
  failed: { icon: 'cross', label: 'Failed' },
  skipped: { icon: 'dash', label: 'Skipped' },
  cancelled: { icon: 'square', label: 'Cancelled' },
};

/** Tell whether a card's work goes on. @param {Card} card */
export function isRunning(card) {
  return card.status === 'open' && TRACKED_KINDS.has(card.cardKind);
}

/** The small sign of a card's status; words for those who do not see it. */
export function statusMark(card, { waits = false } = {}) {
  if (card.status === 'open') {
    const label = waits ? 'Waiting' : 'Running';
    return html`<span class="mark ${waits ? 'mark-waits' : 'mark-open'}"
      ><span class="sr-only">${label}</span></span
    >`;
  }
  // A status of a later protocol is named, and never looks like success.
  const mark = MARKS[card.status] ?? { icon: 'info', label: humanize(card.status) };
  return html`<span class="mark mark-${card.status}"
    >${icon(mark.icon)}<span class="sr-only">${mark.label}</span></span
  >`;
}

/** The status in a word, where it is not plain success or work in progress. */
export function statusWord(card) {
  if (card.status === 'ok' || card.status === 'open') return nothing;
  const label = MARKS[card.status]?.label ?? humanize(card.status);
  return html`<span class="status-word status-${card.status}">${label}</span>`;
}

/** @param {Card} card */
export function titleOf(card, fallback = humanize(card.cardKind)) {
  return card.hint.title || fallback;
}

/**
 * A part that folds; the reader's choice outlives rendering.
 * @param {string} className
 * @param {boolean} isOpen First state; turning true later opens the fold.
 * @param {(event: Event) => void} [onToggle]
 */
export function fold(className, isOpen, summary, body, onToggle) {
  return html`<details class="fold ${className}" ?open=${isOpen} @toggle=${onToggle ?? nothing}>
    <summary>${icon('chevron')}${summary}</summary>
    <div class="fold-body">${body}</div>
  </details>`;
}

/** One line of a list of facts; nothing when there is no value. */
export function fact(name, value) {
  if (value === undefined || value === null || value === '') return nothing;
  return html`<div><dt>${name}</dt><dd>${asText(value)}</dd></div>`;
}

/** What the work cost, in one quiet line. */
export function metricsLine(card) {
  const parts = metricParts(card.metrics);
  return parts.length
    ? html`<span class="metrics">${parts.map((part) => html`<span>${part}</span>`)}</span>`
    : nothing;
}

/** The same where the head tells the duration: nothing when that is all there is. */
export function costLine(card) {
  return Object.keys(card.metrics ?? {}).some((name) => name !== 'duration_ms')
    ? metricsLine(card)
    : nothing;
}

/** How long a closed card took. */
export function duration(card) {
  const ms = card.metrics?.duration_ms;
  return typeof ms === 'number'
    ? html`<span class="duration">${formatDuration(ms)}</span>`
    : nothing;
}

/** Remarks on the work, oldest first: notes, changes of mode, older intents. */
export function remarkList(card) {
  const remarks = card.remarks.filter((tick) => tick.kind !== 'intent');
  if (!remarks.length) return nothing;
  return html`<ul class="remarks">
    ${remarks.map((tick) => remark(tick))}
  </ul>`;
}

function remark({ kind, inner }) {
  if (kind === 'escalation') {
    return html`<li>
      Changed from ${inner.from_mode} to
      ${inner.to_mode}${inner.reason ? html`: ${inner.reason}` : nothing}
    </li>`;
  }
  return html`<li class="remark-${inner.severity ?? 'info'}">${inner.text}</li>`;
}

/** What the running work says of itself: a bar when it is known how far it is. */
export function activity(card) {
  if (!isRunning(card)) return nothing;
  const progress = card.latest.progress?.inner;
  const heartbeat = card.latest.heartbeat?.inner;
  if (!progress && !heartbeat) return nothing;
  const ratio = progressRatio(progress);
  const words = [progress?.stage ?? heartbeat?.stage, itemCount(progress), timing(progress, heartbeat)];
  return html`<div class="activity">
    ${ratio === null
      ? nothing
      : html`<progress max="1" .value=${ratio} aria-label="Progress"></progress>`}
    <span class="activity-words">
      ${words.filter(Boolean).map((word) => html`<span>${word}</span>`)}
    </span>
  </div>`;
}

function progressRatio(progress) {
  if (!progress) return null;
  const { progress_pct: share, items_processed: count, items_total: total } = progress;
  if (typeof share === 'number') return Math.min(1, Math.max(0, share));
  return total > 0 ? Math.min(1, (count ?? 0) / total) : null;
}

function itemCount(progress) {
  if (progress?.items_processed === undefined) return '';
  const { items_processed: count, items_total: total, unit = '' } = progress;
  return `${count}${total === undefined ? '' : ` of ${total}`} ${unit}`.trim();
}

function timing(progress, heartbeat) {
  if (progress?.eta_ms !== undefined) return `${formatDuration(progress.eta_ms)} left`;
  return heartbeat?.uptime_ms === undefined ? '' : formatDuration(heartbeat.uptime_ms);
}

/**
 * A file in short form; opens it beside the conversation.
 * @param {Object} ref With `version` and `thumbnail` where they are known.
 */
export function artifactRef({ artifact_id: id, name, description, version, thumbnail }) {
  const label = html`${picture(thumbnail)}<bdi>${shownName(name ?? id)}</bdi>`;
  if (!isArtifactId(id)) return html`<span class="chip">${label}</span>`;
  return html`<button
    type="button"
    class="chip"
    data-action="show-artifact"
    data-target=${id}
    data-version=${version ?? ''}
    title=${description ?? ''}
  >
    ${label}
  </button>`;
}

/** @param {any[]|undefined} refs */
export function artifactRefs(refs) {
  if (!Array.isArray(refs) || refs.length === 0) return nothing;
  return html`<div class="chips">${refs.map(artifactRef)}</div>`;
}

/**
 * The same without those whose own cards are drawn right below.
 * @param {Card} card
 * @param {CardView} view
 */
export function furtherArtifactRefs({ payload: { artifacts } }, view) {
  if (!Array.isArray(artifacts)) return nothing;
  const below = view.childCards().filter(({ cardKind }) => cardKind === 'artifact');
  const shown = new Set(below.map(({ payload }) => payload.artifact_id));
  return artifactRefs(artifacts.filter(({ artifact_id: id }) => !shown.has(id)));
}
