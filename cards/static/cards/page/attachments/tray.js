/** The files above the message field, each with how far it is. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { repeat } from '../../vendor/lit-html/directives/repeat.js';
import { thumbnailUrl } from '../artifacts/files.js';
import { shownName } from '../artifacts/names.js';
import { formatBytes } from '../format.js';
import { icon } from '../icons.js';

/**
 * @param {import('./attachments.js').Attachment[]} entries
 * @param {Object} handlers
 * @param {(key: string) => void} handlers.onRemove
 * @param {(key: string) => void} handlers.onRetry
 */
export function tray(entries, handlers) {
  if (entries.length === 0) return nothing;
  return html`<ul class="tray" aria-label="Attached files">
    ${repeat(entries, ({ key }) => key, (entry) => chip(entry, handlers))}
  </ul>`;
}

function chip({ key, name, sizeBytes, state, share, trouble, attached }, { onRemove, onRetry }) {
  const label = shownName(name);
  const isUnderWay = state === 'waiting' || state === 'sending';
  return html`<li class="attachment attachment-${state}" data-state=${state}>
    ${picture(attached?.thumbnail)}
    <span class="attachment-text">
      <bdi class="attachment-name" title=${label}>${label}</bdi>
      ${trouble
        ? html`<span class="attachment-trouble">${trouble}</span>`
        : html`<span class="quiet">${isUnderWay ? progressWords(state, share) : formatBytes(sizeBytes)}</span>`}
      ${isUnderWay ? html`<progress max="1" .value=${share} aria-label="Uploading ${label}"></progress>` : nothing}
    </span>
    ${state === 'failed'
      ? html`<button type="button" class="icon-button" title="Try again" @click=${() => onRetry(key)}>
          ${icon('retry')}<span class="sr-only">Upload ${label} again</span>
        </button>`
      : nothing}
    <button type="button" class="icon-button" title=${isUnderWay ? 'Cancel' : 'Remove'} @click=${() => onRemove(key)}>
      ${icon('close')}<span class="sr-only">${isUnderWay ? 'Cancel the upload of' : 'Remove'} ${label}</span>
    </button>
  </li>`;
}

function progressWords(state, share) {
  if (state === 'waiting') return 'Waiting';
  return share < 1 ? `${Math.floor(share * 100)} %` : 'Checking';
}

/** A small picture, or the sign of a file. @param {any} thumbnail Its path. */
export function picture(thumbnail) {
  const url = thumbnailUrl(thumbnail);
  if (!url) return icon('file');
  // One that is gone leaves no broken picture.
  const hide = ({ target }) => (target.hidden = true);
  return html`<img class="thumbnail" src=${url} alt="" width="40" height="40" @error=${hide} />`;
}
