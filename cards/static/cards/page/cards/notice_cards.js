/** Notices beside the work: system, budget, memory, files, teams, and the unknown. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { isArtifactId, isArtifactUri, shownName } from '../artifacts/names.js';
import { picture } from '../attachments/tray.js';
import { asText, budgetRows, formatBytes, humanize } from '../format.js';
import { icon } from '../icons.js';
import {
  activity, duration, fold, metricsLine, remarkList, statusMark, statusWord, titleOf,
} from './card_parts.js';
import { errorBlock } from './error_box.js';

/** A notice of the framework, with what to do about it. Spec: EMIT 10.9. */
export function systemCard(card, view) {
  const isWarning = card.hint.icon === 'warning';
  const { summary, action_hint: advice } = card.payload;
  return html`<div class="notice ${isWarning ? 'notice-warning' : ''}" role="note">
    ${icon(isWarning ? 'alert' : 'info')}
    <div>
      <strong>${titleOf(card, 'System notice')}</strong>
      ${summary ? html`<p class="plain-text">${summary}</p>` : nothing}
      ${advice ? html`<p class="plain-text advice">${advice}</p>` : nothing}
      ${errorBlock(card)} ${view.children}
    </div>
  </div>`;
}

const BUDGET_TITLES = {
  warning: 'The budget is running low',
  exhausted: 'The budget is used up',
  reset: 'The budget starts anew',
};

/** A word about the budget, with what is used of it. */
export function budgetCard(card, view) {
  const { kind, spent, limit } = card.payload;
  const isCalm = kind === 'reset';
  const level = kind === 'exhausted' ? 'notice-danger' : isCalm ? '' : 'notice-warning';
  return html`<div class="notice ${level}" role="note">
    ${icon('gauge')}
    <div>
      <strong>${BUDGET_TITLES[kind] ?? titleOf(card)}</strong>
      ${budgetRows(spent, limit).map(
        (row) => html`<div class="budget-row">
          ${row.ratio === null
            ? nothing
            : html`<progress max="1" .value=${row.ratio} aria-label=${row.name}></progress>`}
          <span>${row.text}</span>
        </div>`,
      )}
      ${errorBlock(card)} ${view.children}
    </div>
  </div>`;
}

const MEMORY_WORDS = { read: 'Recalled', write: 'Remembered', compact: 'Condensed' };

/** Memory read, written or condensed: one quiet line. */
export function memoryCard(card, view) {
  const { op, subject, bytes } = card.payload;
  return html`<div class="strip">
      ${icon('memory')}<span>${MEMORY_WORDS[op] ?? humanize(op ?? 'memory')}</span>
      ${subject ? html`<span class="strip-subject">${subject}</span>` : nothing}
      ${typeof bytes === 'number' ? html`<span class="quiet">${formatBytes(bytes)}</span>` : nothing}
      ${statusWord(card)}
    </div>
    ${errorBlock(card)} ${view.children}`;
}

/** A file that came out of the work. */
export function artifactCard(card, view) {
  const { name, description, role, version, size_bytes: size, mime_type: mime, uri } = card.payload;
  const facts = [
    role ? humanize(role) : '',
    mime,
    typeof size === 'number' ? formatBytes(size) : '',
    version > 1 ? `version ${version}` : '',
  ].filter(Boolean);
  const body = html`${thumbnail(card)}
    <span class="artifact-text">
      <strong><bdi>${shownName(name ?? titleOf(card))}</bdi></strong>
      ${description ? html`<span>${description}</span>` : nothing}
      <span class="quiet">${facts.join(' · ')}</span>
      ${!uri || isArtifactUri(uri) ? nothing : html`<code class="quiet">${uri}</code>`}
    </span>
    ${statusWord(card)}`;
  return html`${artifactBox(card.payload, body)} ${errorBlock(card)} ${view.children}`;
}

function artifactBox({ artifact_id: id, version }, body) {
  if (!isArtifactId(id)) return html`<div class="artifact">${body}</div>`;
  return html`<button
    type="button"
    class="artifact"
    data-action="show-artifact"
    data-target=${id}
    data-version=${version ?? ''}
  >
    ${body}
  </button>`;
}

/** A picture of the server's; of other servers the picture itself. Spec: EMIT 10. */
function thumbnail({ payload: { thumbnail: given } }) {
  const isInline = /^[A-Za-z0-9+/=]+$/.test(given ?? '') && !given.startsWith('/v1/');
  if (!isInline) return picture(given);
  return html`<img class="thumbnail" src="data:image/png;base64,${given}" alt="" width="40" height="40">`;
}

/** A group of agents. */
export function teamCard(card, view) {
  const { team_name: name, members } = card.payload;
  return html`<div class="strip">
      ${icon('team')}<strong>${name ?? titleOf(card)}</strong>
      <span class="chips"
        >${(members ?? []).map((member) => html`<span class="chip">${member}</span>`)}</span
      >
      ${statusWord(card)}
    </div>
    ${errorBlock(card)} ${view.children}`;
}

/** A kind that this page does not know: everything it carries, in plain form. */
export function genericCard(card, view) {
  const { error, ...payload } = card.payload;
  const texts = [...card.channels].map(([name, blocks]) => [name, [...blocks.values()].join('')]);
  return html`
    ${fold(
      'generic',
      card.hint.initial_state === 'expanded',
      html`${card.status === 'open' ? icon('info') : statusMark(card)}
        <span class="head"><strong>${titleOf(card)}</strong>
          ${card.hint.summary ? html`<span class="intent">${card.hint.summary}</span>` : nothing}</span>
        <span class="tag">${humanize(card.cardKind)}</span> ${statusWord(card)} ${duration(card)}`,
      html`
        ${texts.map(([name, text]) => html`<section class="io"><h4>${humanize(name)}</h4><p class="plain-text">${text}</p></section>`)}
        <pre class="raw" tabindex="0">${asText(payload)}</pre>
        ${metricsLine(card)}
      `,
    )}
    ${activity(card)} ${remarkList(card)} ${error ? errorBlock(card) : nothing} ${view.children}
  `;
}
