/** Code blocks: language label, copy button, highlighting when they come into view. */

import hljs from '../vendor/highlight/highlight.js';

/** Above this many characters colours cost more time than they are worth. */
const MAX_HIGHLIGHT_CHARS = 60_000;

/** Blocks up to this size are coloured at once, so that they do not flicker. */
const INSTANT_CHARS = 3_000;

const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      highlight(entry.target);
    }
  },
  { rootMargin: '300px' },
);

/**
 * Frame a `pre` of rendered Markdown.
 * @param {HTMLPreElement} pre
 */
export function decorateCode(pre) {
  const code = pre.querySelector('code') ?? pre;
  const language = /(?:^|\s)language-(\S+)/.exec(code.className)?.[1] ?? '';
  const figure = codeFigure(code.textContent.replace(/\n$/, ''), language);
  pre.replaceWith(figure);
}

/**
 * Return a framed code block.
 * @param {string} text
 * @param {string} [language]
 * @param {string} [label] Shown instead of the language, as a file's path.
 * @returns {HTMLElement}
 */
export function codeFigure(text, language = '', label = language) {
  const figure = document.createElement('figure');
  figure.className = 'code';
  const caption = document.createElement('figcaption');
  caption.append(span('code-label', label || 'text'), copyButton());
  const pre = document.createElement('pre');
  pre.tabIndex = 0;
  const code = document.createElement('code');
  code.textContent = text;
  pre.append(code);
  figure.append(caption, pre);
  planHighlight(code, language);
  return figure;
}

/** Return the language of a file by its name; empty when unknown. */
export function languageOfPath(path = '') {
  const extension = /\.([a-z0-9]+)$/i.exec(path)?.[1] ?? '';
  return hljs.getLanguage(extension) ? extension : '';
}

function planHighlight(code, language) {
  const length = code.textContent.length;
  if (!hljs.getLanguage(language) || length > MAX_HIGHLIGHT_CHARS) return;
  code.dataset.language = language;
  if (length <= INSTANT_CHARS) highlight(code);
  else observer.observe(code);
}

/** The highlighter escapes the text itself and adds nothing but spans. */
function highlight(code) {
  const { value } = hljs.highlight(code.textContent, {
    language: code.dataset.language,
    ignoreIllegals: true,
  });
  code.innerHTML = value;
  code.classList.add('hljs');
}

function copyButton() {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.dataset.action = 'copy';
  button.textContent = 'Copy';
  return button;
}

function span(className, text) {
  const element = document.createElement('span');
  element.className = className;
  element.textContent = text;
  return element;
}

/**
 * Copy the code that a button stands above, and say so on the button.
 * @param {HTMLButtonElement} button
 */
export async function copyCode(button) {
  const text = button.closest('figure').querySelector('pre').textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    // Without permission or a secure context there is no clipboard; say it.
    button.textContent = 'Press Ctrl+C';
    getSelection().selectAllChildren(button.closest('figure').querySelector('pre'));
  }
  setTimeout(() => (button.textContent = 'Copy'), 1600);
}
