/**
 * The protocol client: everything a page needs to show a session, without a DOM.
 *
 * Spec: EMIT 2, 9, 15; Rulings E1-E9.
 */

export { backoffDelay, BASE_DELAY_MS, MAX_DELAY_MS } from './backoff.js';
export { Connection, PING_INTERVAL_MS } from './connection.js';
export {
  channelText,
  childrenOf,
  initialState,
  loadSnapshot,
  MAX_TICKS,
  reduce,
  reduceBatch,
} from './reducer.js';
