/** First delay before a reconnect, in ms; it doubles with each failure. */
export const BASE_DELAY_MS = 500;

/** Longest delay before a reconnect, in ms. */
export const MAX_DELAY_MS = 30_000;

/**
 * Return the delay before the next attempt: exponential, the upper half random, so
 * that the clients of a restarted server do not return all at once.
 *
 * Spec: EMIT 16.
 * @param {number} attempt Failed attempts so far, from 0.
 * @param {() => number} random From 0 up to 1.
 * @returns {number} In ms.
 */
export function backoffDelay(attempt, random) {
  const ceiling = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** Math.min(attempt, 16));
  return Math.round(ceiling * (0.5 + random() / 2));
}
