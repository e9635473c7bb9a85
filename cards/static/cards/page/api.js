/** The REST resources that the page reads. Same origin, the browser's own cookie. */

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

async function readJson(response) {
  if (isRefusal(response.status)) throw new NotSignedIn(`HTTP ${response.status}`);
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.json();
}
