/**
 * A file's content as the page may show it: bounded, and never as a document of its
 * own in our origin. Markup is shown as its source.
 *
 * @typedef {import('./files.js').ArtifactFacts} ArtifactFacts
 * @typedef {import('./files.js').Version} Version
 */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { codeFigure, languageOfPath } from '../code.js';
import { formatBytes } from '../format.js';
import { StreamedMarkdown } from '../streamed_markdown.js';
import { changesBetween, changesInWords } from './changes.js';
import { contentUrl, fetchBlob, fetchText } from './files.js';
import { isText, languageOfType, previewKind } from './kinds.js';
import { shownName } from './names.js';
import { parseTable } from './table.js';

/** So much of a text is read, in bytes; of Markdown less, which costs more to draw. */
const MAX_TEXT_BYTES = 1024 * 1024;
const MAX_MARKDOWN_BYTES = 256 * 1024;
const MAX_COMPARED_BYTES = 512 * 1024;

/** Larger pictures and papers are only downloaded. */
const MAX_SHOWN_BYTES = 50 * 1024 * 1024;

/**
 * @typedef {Object} Preview
 * @property {any} content What lit draws.
 * @property {() => void} [release] Gives back what it holds.
 *
 * @param {ArtifactFacts} artifact
 * @param {Version} version
 * @param {AbortSignal} signal
 * @returns {Promise<Preview>}
 * @throws {Error} With a sentence for the user.
 */
export async function loadPreview(artifact, version, signal) {
  const kind = previewKind(version.mime_type, artifact.name);
  if (kind === 'none') return { content: only('There is no preview of this kind of file.') };
  if (kind === 'image' || kind === 'pdf') {
    if (version.size_bytes > MAX_SHOWN_BYTES) return { content: only('This file is too large to be shown here.') };
    return kind === 'image' ? image(artifact, version) : pdf(artifact, version, signal);
  }
  const maxBytes = kind === 'markdown' ? MAX_MARKDOWN_BYTES : MAX_TEXT_BYTES;
  const { text, isCut } = await fetchText(artifact.artifact_id, version, maxBytes, signal);
  if (text === '') return { content: only('This file is empty.') };
  const note = isCut
    ? html`<p class="panel-note">The first ${formatBytes(maxBytes)} of ${formatBytes(version.size_bytes)}. Download the file for the rest.</p>`
    : nothing;
  return { content: html`${note}${TEXTS[kind](text, { artifact, version, isCut })}` };
}

function only(words) {
  return html`<p class="panel-empty">${words}</p>`;
}

const TEXTS = {
  text: (text) => html`<pre class="raw panel-text" tabindex="0">${text}</pre>`,
  code: (text, { artifact, version }) =>
    codeFigure(text, languageOfPath(artifact.name) || languageOfType(version.mime_type)),
  markdown: (text) => {
    const prose = new StreamedMarkdown();
    prose.update(text, true);
    return prose.host;
  },
  table,
};

function table(text, { artifact, version, isCut }) {
  const isTabbed = /tab-separated/.test(version.mime_type) || /\.tsv$/i.test(artifact.name);
  const found = parseTable(text, { isTabbed, isCut });
  if (!found) return TEXTS.text(text);
  const { head, rows, moreRows, moreColumns } = found;
  return html`<div class="table-scroll panel-table" tabindex="0" role="region" aria-label="Table">
      <table>
        <thead>
          <tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr>
        </thead>
        <tbody>
          ${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}
        </tbody>
      </table>
    </div>
    ${more(moreRows, 'row', isCut)} ${more(moreColumns, 'column', false)}`;
}

function more(count, unit, isCut) {
  if (count === 0) return nothing;
  const least = isCut ? 'At least ' : '';
  return html`<p class="panel-note">
    ${least}${count.toLocaleString()} more ${unit}${count === 1 ? '' : 's'}
  </p>`;
}

function image({ artifact_id: id, name }, { version }) {
  const fail = ({ target }) => {
    target.hidden = true;
    target.nextElementSibling.hidden = false;
  };
  return {
    content: html`<div class="panel-image">
      <img src=${contentUrl(id, version)} alt=${shownName(name)} @error=${fail} />
      <p class="panel-empty" hidden>The browser cannot show this picture.</p>
    </div>`,
  };
}

/** The browser's own viewer, where it has one, runs apart from this page. */
async function pdf({ artifact_id: id, name }, { version }, signal) {
  if (!navigator.pdfViewerEnabled) return { content: only('This browser shows no PDF files.') };
  const url = URL.createObjectURL(await fetchBlob(id, version, 'application/pdf', signal));
  return {
    content: html`<iframe class="panel-pdf" src=${url} title=${shownName(name)}></iframe>`,
    release: () => URL.revokeObjectURL(url),
  };
}

/** Tell whether what two versions differ in can be shown. */
export function canCompare(before, after) {
  return isText(before.mime_type) && isText(after.mime_type);
}

/**
 * @param {ArtifactFacts} artifact
 * @param {Version} before
 * @param {Version} after
 * @param {AbortSignal} signal
 * @returns {Promise<Preview & {words: string}>} `words`: the same, to be said.
 */
export async function loadChanges({ artifact_id: id }, before, after, signal) {
  const [old, now] = await Promise.all(
    [before, after].map((version) => fetchText(id, version, MAX_COMPARED_BYTES, signal)),
  );
  const isCut = old.isCut || now.isCut;
  const changes = changesBetween(old.text, now.text);
  const words = changes
    ? `${changesInWords(changes)} since version ${before.version}`
    : `Version ${before.version} is too different to be compared here`;
  const content = html`<p class="panel-note">
      ${words}.${isCut ? ` Only the first ${formatBytes(MAX_COMPARED_BYTES)} were compared.` : ''}
    </p>
    ${changes && changes.lines.length > 0
      ? html`<pre class="diff panel-diff" tabindex="0" aria-label="Changes">${changes.lines.map(changedLine)}</pre>`
      : nothing}
    ${changes ? more(changes.moreLines, 'line', isCut) : nothing}`;
  return { content, words };
}

function changedLine({ kind, text }) {
  if (kind === 'added') return html`<ins class="diff-added"><span class="sr-only">Added: </span><span aria-hidden="true">+</span>${text}</ins>`;
  if (kind === 'removed') return html`<del class="diff-removed"><span class="sr-only">Removed: </span><span aria-hidden="true">−</span>${text}</del>`;
  if (kind === 'same') return html`<span class="diff-same"> ${text}</span>`;
  return html`<span class="diff-hunk">${text}</span>`;
}
