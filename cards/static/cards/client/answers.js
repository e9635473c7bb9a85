/**
 * The user's answers to prompts, until the server has settled those prompts.
 *
 * Of an answer that was on its way when the connection broke nobody knows whether it
 * arrived. It goes out again only if its prompt is still asked on the next connection,
 * and never twice on one.
 *
 * Spec: EMIT 2.4.4, 7.3; Rulings E15, E16.
 *
 * @typedef {import('./types.js').Answer} Answer
 * @typedef {import('./types.js').ErrorInfo} ErrorInfo
 * @typedef {import('./types.js').Frame} Frame
 */

/** `prompt.reply` has another word for one of the user's. Spec: Ruling E15. */
const REPLY_OF_DECISION = { cancel: 'cancelled' };

export class Answers {
  /** @type {Map<string, Answer>} */
  #byId = new Map();

  /** @returns {Map<string, Answer>} By request id; a copy. */
  all() {
    return new Map(this.#byId);
  }

  /**
   * Take an answer, unless one to the same prompt is under way.
   * @param {string} requestId
   * @param {string} decision
   * @param {Object<string, any>} payload
   * @returns {boolean} Whether it was taken.
   */
  give(requestId, decision, payload) {
    const known = this.#byId.get(requestId);
    if (known && known.state !== 'refused') return false;
    this.#byId.set(requestId, { requestId, decision, payload, state: 'waiting', error: null });
    return true;
  }

  /** Give up an answer that is not on its way; tell whether there was one. */
  takeBack(requestId) {
    return this.#byId.get(requestId)?.state === 'waiting' && this.forget(requestId);
  }

  /** Forget an answer; tell whether there was one. */
  forget(requestId) {
    return this.#byId.delete(requestId);
  }

  /** Forget all of them. */
  clear() {
    this.#byId.clear();
  }

  /** Make what is unconfirmed go out again, as after a lost connection. */
  rewind() {
    this.#update((answer) => answer.state === 'sent', { state: 'waiting' });
  }

  /**
   * @param {(requestId: string) => boolean} isAsked Whether the prompt is open on this
   *   connection.
   * @returns {Object<string, any>[]} Frames to send now, marked as sent.
   */
  takeFrames(isAsked) {
    const isDue = ({ state, requestId }) => state === 'waiting' && isAsked(requestId);
    const due = [...this.#byId.values()].filter(isDue);
    this.#update(isDue, { state: 'sent' });
    return due.map(({ requestId, decision, payload }) => ({
      type: 'prompt.user_response',
      request_id: requestId,
      decision,
      payload,
    }));
  }

  /**
   * Mark an answer that the prompt did not take.
   * @param {string} requestId
   * @param {ErrorInfo} error
   * @returns {boolean} Whether there was such an answer.
   */
  refuse(requestId, error) {
    return this.#update((answer) => answer.requestId === requestId, { state: 'refused', error });
  }

  /** Refuse whatever is on its way. @param {ErrorInfo} error */
  refuseSent(error) {
    this.#update((answer) => answer.state === 'sent', { state: 'refused', error });
  }

  /**
   * Note how a prompt was settled: the answer to it was accepted, or another one.
   * @param {Frame} frame
   * @returns {boolean} Whether it changed anything.
   */
  settle({ type, payload }) {
    if (type !== 'prompt.reply') return false;
    const answer = this.#byId.get(payload?.request_id);
    if (!answer) return false;
    const wanted = REPLY_OF_DECISION[answer.decision] ?? answer.decision;
    const isOurs = answer.state === 'sent' && wanted === payload.decision;
    if (!isOurs) return this.forget(answer.requestId);
    return this.#update((each) => each === answer, { state: 'accepted' });
  }

  /**
   * Forget answers to prompts that are not open in a snapshot.
   * @param {import('./types.js').Snapshot} snapshot
   */
  settleSnapshot({ prompts }) {
    const openIds = new Set(prompts.map(({ payload }) => payload.request_id));
    for (const { requestId, state } of this.#byId.values()) {
      if (state !== 'accepted' && !openIds.has(requestId)) this.forget(requestId);
    }
  }

  #update(matches, fields) {
    const changed = [...this.#byId.values()].filter(matches);
    for (const answer of changed) this.#byId.set(answer.requestId, { ...answer, ...fields });
    return changed.length > 0;
  }
}
