/**
 * The protocol client: everything a page needs to show a session, without a DOM.
 *
 * Spec: EMIT 2, 7, 9, 15; Rulings E1-E10, E15-E17.
 */

export { backoffDelay, BASE_DELAY_MS, MAX_DELAY_MS, reconnectDelay } from './backoff.js';
export { Connection, PING_INTERVAL_MS } from './connection.js';
export { openPrompts } from './prompts.js';
export {
  channelText,
  childrenOf,
  initialState,
  loadSnapshot,
  MAX_TICKS,
  reduce,
  reduceBatch,
} from './reducer.js';
export { lastTurn, runningTurn, turnCardIdOf } from './turns.js';
