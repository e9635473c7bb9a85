/**
 * Markdown of the assistant → DOM that cannot run, load or navigate by surprise.
 *
 * Raw HTML stays text; the sanitiser is the second wall behind the recogniser.
 *
 * Spec: EMIT 13, 15.3.
 */

import markdownIt from '../vendor/markdown-it/markdown-it.js';
import cjkFriendly from '../vendor/markdown-it-cjk-friendly/index.js';
import DOMPurify from '../vendor/dompurify/purify.js';
import { artifactIdOf, isArtifactUri } from './artifacts/names.js';
import { decorateCode } from './code.js';

const LINK_SCHEMES = new Set(['http:', 'https:', 'mailto:']);

const SANITISER = {
  ALLOWED_TAGS: [
    'a', 'blockquote', 'br', 'code', 'del', 'div', 'em', 'h1', 'h2', 'h3', 'h4', 'h5',
    'h6', 'hr', 'img', 'li', 'ol', 'p', 'pre', 's', 'span', 'strong', 'table', 'tbody',
    'td', 'th', 'thead', 'tr', 'ul',
  ],
  ALLOWED_ATTR: [
    'alt', 'class', 'href', 'loading', 'rel', 'src', 'start', 'target', 'title',
  ],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|artifact:|\/v1\/)/i,
  // The pattern is for addresses; these hold none and come from the rules below.
  ADD_URI_SAFE_ATTR: ['loading', 'rel', 'start', 'target'],
  // Code blocks are marked with their language; nothing else sets data attributes.
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const markdown = markdownIt({ html: false, linkify: true });
// `**` beside Chinese letters ends a bold link too: a file's name often is one.
markdown.use(cjkFriendly);
// `main.py` and `notes.md` are file names here, not hosts in Paraguay and Moldova.
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
// Refused targets are shown as inert text by the rules below instead of as source.
markdown.validateLink = () => true;

const { rules } = markdown.renderer;

rules.link_open = (tokens, index) => {
  const href = tokens[index].attrGet('href') ?? '';
  if (!isAllowedLink(href)) return '<span class="inert-link">';
  return openLink(href, tokens[index].attrGet('title'));
};

rules.link_close = (tokens, index) => {
  const href = openerOf(tokens, index).attrGet('href') ?? '';
  return isAllowedLink(href) ? '</a>' : `${inertTarget(href)}</span>`;
};

rules.image = (tokens, index) => {
  const src = tokens[index].attrGet('src') ?? '';
  const alt = tokens[index].content;
  if (isOwnImage(src)) {
    return `<img src="${escape(src)}" alt="${escape(alt)}" loading="lazy">`;
  }
  const label = escape(alt || src);
  if (isAllowedLink(src)) return `${openLink(src)}${label}</a>`;
  return `<span class="inert-link">${label}${inertTarget(src)}</span>`;
};

rules.table_open = () => '<div class="table-scroll"><table>';
rules.table_close = () => '</table></div>';
rules.th_open = rules.td_open = (tokens, index) => {
  // The style attribute of the default rule would offend a strict style-src.
  const align = /text-align:(\w+)/.exec(tokens[index].attrGet('style') ?? '');
  const name = tokens[index].tag;
  return align ? `<${name} class="align-${align[1]}">` : `<${name}>`;
};

/**
 * Parse Markdown into tokens.
 * @param {string} text
 * @param {Object} references Collects link references across the parts of one text.
 */
export function parseMarkdown(text, references) {
  return markdown.parse(text, references);
}

/**
 * Render tokens to sanitised nodes.
 * @param {any[]} tokens
 * @param {Object} references
 * @returns {DocumentFragment}
 */
export function renderTokens(tokens, references) {
  const html = markdown.renderer.render(tokens, markdown.options, references);
  const fragment = DOMPurify.sanitize(html, SANITISER);
  for (const pre of fragment.querySelectorAll('pre')) decorateCode(pre);
  for (const link of fragment.querySelectorAll('a')) becomeArtifactLink(link);
  return fragment;
}

/** A file opens beside the conversation: nothing of our scheme is ever navigated to. */
function becomeArtifactLink(link) {
  const href = link.getAttribute('href') ?? '';
  if (!isArtifactUri(href)) return;
  link.removeAttribute('href');
  link.setAttribute('role', 'button');
  link.tabIndex = 0;
  link.dataset.action = 'show-artifact';
  link.dataset.target = artifactIdOf(href);
}

/** Tell whether a link may be followed. @param {string} href */
export function isAllowedLink(href) {
  if (isArtifactUri(href)) return artifactIdOf(href) !== '';
  const scheme = /^([a-z][a-z0-9+.-]*:)/i.exec(href.trim());
  return scheme !== null && LINK_SCHEMES.has(scheme[1].toLowerCase());
}

/** Images come from this server's API or not at all: a picture is also a beacon. */
function isOwnImage(src) {
  const url = URL.parse ? URL.parse(src, location.href) : parseUrl(src);
  return url?.origin === location.origin && url.pathname.startsWith('/v1/') && src.startsWith('/v1/');
}

function parseUrl(src) {
  try {
    return new URL(src, location.href);
  } catch {
    return null;
  }
}

function openLink(href, title) {
  const name = title ? ` title="${escape(title)}"` : '';
  if (isArtifactUri(href)) {
    return `<a class="artifact-link" href="${escape(href)}"${name}>`;
  }
  return `<a href="${escape(href)}"${name} target="_blank" rel="noopener noreferrer">`;
}

function inertTarget(href) {
  return href ? ` <code>${escape(href)}</code>` : '';
}

function openerOf(tokens, closeIndex) {
  let depth = 0;
  for (let index = closeIndex; index >= 0; index -= 1) {
    if (tokens[index].type === 'link_close') depth += 1;
    if (tokens[index].type === 'link_open' && (depth -= 1) === 0) return tokens[index];
  }
  return tokens[closeIndex];
}

function escape(text) {
  return markdown.utils.escapeHtml(text);
}
