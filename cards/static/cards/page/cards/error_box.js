/**
 * What went wrong: for the user in sight, for the developer folded.
 *
 * @typedef {import('../../client/types.js').Card} Card
 * @typedef {import('../../client/types.js').ErrorInfo} ErrorInfo
 */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { blockAgain } from '../attachments/blocks.js';
import { asText, formatDuration, humanize } from '../format.js';
import { icon } from '../icons.js';
import { fact, fold } from './card_parts.js';

/** The whole turn broke off with these, and tells it once for all its cards. Ruling E14. */
const TURN_WIDE_CODES = new Set(['WORKER_LOST', 'SERVER_STOPPED', 'LOG_UNAVAILABLE']);

/** Tell whether a card failed with its turn rather than by itself. @param {Card} card */
export function brokeOff({ payload: { error } }) {
  return TURN_WIDE_CODES.has(error?.code);
}

/** The error of a card within a turn. @param {Card} card */
export function errorBlock(card) {
  const { error } = card.payload;
  return error && !brokeOff(card) ? errorBox(error) : nothing;
}

/** What ended a turn badly, and the way to try it again. @param {Card} card */
export function turnError(card) {
  const error = card.payload.error ?? card.endedBy;
  if (!error) return nothing;
  const isCalm = card.status === 'cancelled';
  return errorBox(error, { isCalm, choice: canBeRepeated(card, error) ? tryAgain(card, error) : nothing });
}

/** Words can be sent again, and files that the server has. Ruling E28. */
function canBeRepeated({ payload: { input } }, { retryable }) {
  const blocks = input?.content?.filter((block) => block.type !== 'text') ?? [];
  if (!retryable || !(input?.text?.trim() || blocks.length > 0)) return false;
  return blocks.every((block) => blockAgain(block) !== null);
}

function tryAgain({ cardId }, { retry_after_ms: waitMs }) {
  return html`<p class="error-choice">
    <button type="button" class="button" data-action="try-again" data-target=${cardId}>
      ${icon('retry')}Try again
    </button>
    ${waitMs ? html`<span class="quiet">best after ${formatDuration(waitMs)}</span>` : nothing}
  </p>`;
}

/**
 * @param {ErrorInfo} error
 * @param {Object} [options]
 * @param {boolean} [options.isCalm] It was stopped rather than that it failed.
 * @param {any} [options.choice] What the user can do about it.
 */
export function errorBox(error, { isCalm = false, choice = nothing } = {}) {
  return html`<div class="error ${isCalm ? 'error-calm' : ''}">
    ${icon(isCalm ? 'info' : 'alert')}
    <div class="error-text">
      <p>${error.user_message || error.message || 'Something went wrong.'}</p>
      ${choice === nothing ? recoveryLine(error) : choice}
      ${fold('error-details', false, 'Details', errorDetails(error))}
    </div>
  </div>`;
}

function recoveryLine({ recovery, retryable, retry_after_ms: waitMs }) {
  const words = { retry: 'Trying again.', fallback: 'Another way is taken.', abort: 'Given up.' };
  const action = recovery?.action;
  const next = recovery?.next_card_id;
  if (action) {
    return html`<p class="error-next">
      ${words[action] ?? humanize(action)}
      ${next
        ? html`<button type="button" class="link" data-action="show-card" data-target=${next}>
            Show what replaced it
          </button>`
        : nothing}
    </p>`;
  }
  if (!retryable) return nothing;
  const when = waitMs ? ` in ${formatDuration(waitMs)}` : '';
  return html`<p class="error-next">You can try again${when}.</p>`;
}

function errorDetails({ type, code, message, details }) {
  return html`<dl class="facts">
    ${fact('Type', type)} ${fact('Code', code)} ${fact('Message', message)}
    ${details ? fact('More', asText(details)) : nothing}
  </dl>`;
}
