/** How long to wait before a reconnect. Spec: EMIT 16. */

import { GOING_AWAY, TRY_AGAIN_LATER } from './close_codes.js';

/** First delay before a reconnect, in ms; it doubles with each failure. */
export const BASE_DELAY_MS = 500;

/** Longest delay before a reconnect, in ms. */
export const MAX_DELAY_MS = 30_000;

/** A server that asks for time gets the delay of this many failures at least. */
const BUSY_ATTEMPT = 4;

/**
 * Return the delay before the next attempt: exponential, the upper half random, so
 * that the clients of a restarted server do not return all at once.
 *
 * @param {number} attempt Failed attempts so far, from 0.
 * @param {() => number} random From 0 up to 1.
 * @returns {number} In ms.
 */
export function backoffDelay(attempt, random) {
  const ceiling = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** Math.min(attempt, 16));
  return Math.round(ceiling * (0.5 + random() / 2));
}

/**
 * Return the delay after a close: next to none when the server only went away for a
 * moment, a long one when it asked for time.
 *
 * @param {number} code Of the close; 0 when the client itself gave the socket up.
 * @param {number} attempt Failed attempts so far, from 0.
 * @param {() => number} random From 0 up to 1.
 * @returns {number} In ms.
 */
export function reconnectDelay(code, attempt, random) {
  if (code === GOING_AWAY && attempt === 0) return Math.round(BASE_DELAY_MS * random());
  if (code === TRY_AGAIN_LATER) return backoffDelay(Math.max(attempt, BUSY_ATTEMPT), random);
  return backoffDelay(attempt, random);
}
