/** The REST resources that the page uses. Same origin, the browser's own cookie. */

const JSON_HEADERS = { Accept: 'application/json' };

/** @returns {string} */
export function socketUrl() {
  const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
  return `${scheme}//${location.host}/v1/ws`;
}

/**
 * @param {string} sessionId
 * @returns {Promise<import('../client/types.js').Snapshot|null>} Null when unknown.
 * @throws {Error} The server did not answer properly.
 */
export async function fetchSnapshot(sessionId) {
  const response = await fetch(`/v1/sessions/${encodeURIComponent(sessionId)}/snapshot`, {
    headers: JSON_HEADERS,
  });
  if (response.status === 404) return null;
  return readJson(response);
}

/**
 * @param {string} [pageUrl] Of a further page, as the page before named it.
 * @returns {Promise<{results: Object[], next: string|null}>}
 * @throws {NotSignedIn}
 * @throws {Error} The server did not answer properly.
 */
export async function fetchSessions(pageUrl = '/v1/sessions') {
  const { pathname, search } = new URL(pageUrl, location.href);
  return readJson(await fetch(pathname + search, { headers: JSON_HEADERS }));
}

/**
 * Tell whether the server refuses whoever this is. Spec: Ruling E27.
 * @returns {Promise<boolean>} False when it cannot be reached.
 */
export async function isSignedOut() {
  try {
    const { status } = await fetch('/v1/sessions', { headers: JSON_HEADERS });
    return isRefusal(status);
  } catch {
    // Nobody answers, which is no refusal; the socket's back-off goes on.
    return false;
  }
}

/** The server wants to know first who asks. */
export class NotSignedIn extends Error {}

function isRefusal(status) {
  return status === 401 || status === 403;
}

/**
 * Return what a change must carry to be known as this page's. Spec: Ruling E27.
 * @returns {Object<string, string>} Headers.
 */
export function changeHeaders() {
  // The cookie is newer than the page when somebody signed in in another tab.
  const cookie = /(?:^|;\s*)csrftoken=([^;]+)/.exec(document.cookie)?.[1];
  const token = cookie ?? document.querySelector('meta[name="csrf-token"]')?.content ?? '';
  return { ...JSON_HEADERS, 'X-CSRFToken': token };
}

const STATUS_SENTENCES = {
  401: 'Sign in first.',
  403: 'The server does not allow this; reload the page and try again.',
  404: 'This conversation is not there any more.',
  413: 'This file is too large.',
  507: 'The server has no room left for files.',
};

/**
 * Return what an error of the server says to the user.
 * @param {number} status
 * @param {any} body As it was parsed; null when it is no JSON.
 */
export function sentenceOf(status, body) {
  const told = body?.error?.user_message || body?.error?.message;
  return told || STATUS_SENTENCES[status] || `The server answered with an error (HTTP ${status}).`;
}

/** @param {Response} response */
export async function errorSentence(response) {
  const body = await response.json().catch(() => null);
  return sentenceOf(response.status, body);
}

async function readJson(response) {
  if (isRefusal(response.status)) throw new NotSignedIn(`HTTP ${response.status}`);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.json();
}
