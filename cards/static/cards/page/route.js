/** Which session the address shows: `/?session=sess_…`, or none for a new one. */

export function sessionInAddress() {
  return new URLSearchParams(location.search).get('session') ?? '';
}

/** @param {string} sessionId */
export function addressOf(sessionId) {
  return sessionId ? `/?session=${encodeURIComponent(sessionId)}` : '/';
}

/** Go to a session as a step that the back button undoes. */
export function pushSession(sessionId) {
  history.pushState(null, '', addressOf(sessionId));
}

/** Name the session that the present step has become. */
export function replaceSession(sessionId) {
  history.replaceState(null, '', addressOf(sessionId));
}
