/**
 * What goes on in a session, as the message field and the queue show it. Pure.
 *
 * @typedef {import('../client/types.js').OutboxEntry} OutboxEntry
 * @typedef {import('../client/types.js').SessionState} SessionState
 * @typedef {import('../client/types.js').Stopping} Stopping
 */

import { runningTurn, turnCardIdOf } from '../client/index.js';

/**
 * @typedef {Object} Work
 * @property {boolean} isBusy There is something to stop: a turn, or a message that is
 *   to become one.
 * @property {string} turnCardId The turn that a stop means; empty when it is about to
 *   begin and not known yet.
 * @property {boolean} isStopping The stop of that turn is not answered yet.
 * @property {boolean} isClearing That stop means the queue too.
 * @property {{event_id: string, text: string}[]} queue Messages that the server keeps.
 * @property {OutboxEntry[]} following Own messages on their way behind a turn.
 * @property {OutboxEntry[]} leading Own messages on their way that begin a turn, and
 *   those that were refused.
 *
 * @param {SessionState} state
 * @param {OutboxEntry[]} outbox
 * @param {Stopping|null} stopping
 * @returns {Work}
 */
export function workOf(state, outbox, stopping) {
  const { queue } = state;
  const turn = runningTurn(state);
  const isTurnKnown = turn !== undefined || queue.length > 0;
  const isUnderWay = (entry) => entry.state !== 'refused';
  const first = isTurnKnown ? undefined : outbox.find(isUnderWay);
  const turnCardId = turn?.cardId ?? (first ? turnCardIdOf(first.eventId) : '');
  const isOfThisTurn = stopping?.turnCardId === turnCardId || stopping?.turnCardId === '';
  return {
    isBusy: isTurnKnown || first !== undefined,
    turnCardId,
    isStopping: isOfThisTurn,
    isClearing: isOfThisTurn && stopping.clearQueue,
    queue,
    following: isTurnKnown ? outbox.filter(isUnderWay) : [],
    leading: isTurnKnown ? outbox.filter((entry) => !isUnderWay(entry)) : outbox,
  };
}
