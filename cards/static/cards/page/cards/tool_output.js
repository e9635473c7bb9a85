/** What went into a tool and came out of it, by its render hint. */

import { html, nothing } from '../../vendor/lit-html/lit-html.js';
import { parseAnsi } from '../ansi.js';
import { languageOfPath } from '../code.js';
import { asText, humanize } from '../format.js';
import { fact } from './card_parts.js';
import { parseHits } from './search_hits.js';

/** Lines and characters shown at first; the rest comes on request. */
const MAX_CHARS = 20_000;

const BRIEF_FIELDS = [
  'command', 'cmd', 'query', 'pattern', 'file_path', 'path', 'url', 'name',
];

/**
 * Return the telling part of a tool's input in one short line.
 * @param {Object<string, any>} payload
 */
export function briefInput({ input }) {
  if (typeof input === 'string') return oneLine(input);
  if (typeof input !== 'object' || input === null) return '';
  const field =
    BRIEF_FIELDS.find((name) => typeof input[name] === 'string' && input[name]) ??
    Object.keys(input).find((name) => typeof input[name] === 'string');
  return field ? oneLine(input[field]) : '';
}

function oneLine(text) {
  return text.slice(0, 240).replace(/\s+/g, ' ').trim();
}

/** @param {Object<string, any>} payload */
export function toolInputView(payload, view) {
  const { input, render_hint: hint } = payload;
  if (input === undefined || input === null) return nothing;
  const command = input.command ?? input.cmd;
  if (typeof command === 'string' && (!hint || hint === 'terminal')) {
    return section('Input', html`<pre class="terminal" tabindex="0"><span class="terminal-sign">$ </span>${command}</pre>${restOfInput(input)}`);
  }
  return section('Input', view.code('input', asText(input), typeof input === 'string' ? '' : 'json'));
}

function restOfInput(input) {
  const rest = Object.entries(input).filter(([name]) => name !== 'command' && name !== 'cmd');
  if (!rest.length) return nothing;
  return html`<dl class="facts">${rest.map(([name, value]) => fact(humanize(name), value))}</dl>`;
}

/** @param {Object<string, any>} payload */
export function toolOutputView(payload, view) {
  const { output } = payload;
  if (output === undefined || output === null) return nothing;
  if (output === '') return section('Output', html`<p class="quiet">Empty.</p>`);
  const text = asText(output);
  const isCut = text.length > MAX_CHARS && !view.isExpanded('output');
  const shown = isCut ? text.slice(0, MAX_CHARS) : text;
  return section('Output', html`${byHint(payload, shown, view)} ${isCut ? showAll(view, text) : nothing}`);
}

const OUTPUTS = {
  terminal: (payload, text) => terminal(text),
  code: codeOutput,
  diff: (payload, text) => diff(text),
  search: (payload, text) => searchHits(text),
  file_info: (payload, text) => fileInfo(payload.output, text),
};

function byHint(payload, text, view) {
  const draw = Object.hasOwn(OUTPUTS, payload.render_hint ?? '')
    ? OUTPUTS[payload.render_hint]
    : plainOutput;
  return draw(payload, text, view);
}

function section(name, body) {
  return html`<section class="io"><h4>${name}</h4>${body}</section>`;
}

function showAll(view, text) {
  const rest = (text.length - MAX_CHARS).toLocaleString();
  return html`<button type="button" class="link" @click=${() => view.expand('output')}>
    Show ${rest} more characters
  </button>`;
}

function terminal(text) {
  const runs = parseAnsi(text);
  return html`<pre class="terminal" tabindex="0">${runs.map((run) =>
    run.style ? html`<span class=${run.style}>${run.text}</span>` : run.text,
  )}</pre>`;
}

function codeOutput(payload, text, view) {
  const { language, file_path: path } = payload;
  return view.code('output', text, language || languageOfPath(path), path || language);
}

function plainOutput(payload, text, view) {
  if (typeof payload.output !== 'string') return view.code('output', text, 'json');
  return html`<pre class="raw" tabindex="0">${text}</pre>`;
}

function diff(text) {
  return html`<pre class="diff" tabindex="0">${text
    .split('\n')
    .map((line) => html`<span class=${diffClass(line)}>${line || ' '}</span>`)}</pre>`;
}

function diffClass(line) {
  if (/^(\+\+\+|---|diff |index |Index: )/.test(line)) return 'diff-file';
  if (line.startsWith('@@')) return 'diff-hunk';
  if (line.startsWith('+')) return 'diff-added';
  if (line.startsWith('-')) return 'diff-removed';
  return 'diff-same';
}

function searchHits(text) {
  const found = parseHits(text);
  if (!found) return html`<pre class="raw" tabindex="0">${text}</pre>`;
  return html`<div class="hits" tabindex="0">
    ${found.files.map(foundFile)}
    ${found.rest ? html`<pre class="raw">${found.rest}</pre>` : nothing}
  </div>`;
}

function foundFile({ path, count, rows }) {
  return html`<div>
    <div class="hit-path">${path} <span class="quiet">${count}</span></div>
    ${rows.map(
      (row, index) => html`<div class=${rowClass(row, rows[index - 1])}>
        <span>${row.line}</span><code>${row.text}</code>
      </div>`,
    )}
  </div>`;
}

function rowClass(row, before) {
  const isApart = before && row.line > before.line + 1;
  return `hit ${row.isHit ? '' : 'hit-near'} ${isApart ? 'hit-apart' : ''}`;
}

function fileInfo(output, text) {
  const facts = factsOf(output, text);
  if (!facts) return html`<pre class="raw" tabindex="0">${text}</pre>`;
  return html`<dl class="facts facts-card">
    ${Object.entries(facts).map(([name, value]) => fact(humanize(name), value))}
  </dl>`;
}

function factsOf(output, text) {
  if (typeof output === 'object' && !Array.isArray(output)) return output;
  try {
    const parsed = JSON.parse(text);
    return typeof parsed === 'object' && !Array.isArray(parsed) ? parsed : null;
  } catch {
    // Not JSON: shown as the text it is.
    return null;
  }
}
