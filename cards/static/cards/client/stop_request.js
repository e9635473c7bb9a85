/**
 * The user's wish that a turn stops, until the server has answered it.
 *
 * It names the turn where that is known, so that one that comes late never hits the
 * next turn. Unanswered it is asked again on the next socket, unless the log shows
 * meanwhile that the turn has ended.
 *
 * Spec: Rulings E9, E10.
 *
 * @typedef {import('./types.js').Frame} Frame
 * @typedef {import('./types.js').Stopping} Stopping
 */
export class StopRequest {
  #isSent = false;

  constructor() {
    /** @type {Stopping|null} */
    this.wish = null;
  }

  /** @param {Stopping} wish Takes the place of an older one. */
  ask(wish) {
    this.wish = wish;
    this.#isSent = false;
  }

  /**
   * @param {string} traceId
   * @returns {Object<string, any>|null} The frame to send now, marked as sent.
   */
  takeFrame(traceId) {
    if (!this.wish || this.#isSent) return null;
    this.#isSent = true;
    const { turnCardId, clearQueue } = this.wish;
    return {
      type: 'session.interrupt',
      trace_id: traceId,
      ...(turnCardId && { turn_card_id: turnCardId }),
      ...(clearQueue && { clear_queue: true }),
    };
  }

  /** Ask again, as after a lost connection. */
  rewind() {
    this.#isSent = false;
  }

  /** Forget the wish; tell whether there was one. */
  forget() {
    const known = this.wish !== null;
    this.wish = null;
    return known;
  }

  /**
   * Forget the wish if a frame answers it: the turn's close, or that none runs.
   * @param {Frame} frame
   * @returns {boolean} Whether it did.
   */
  settle(frame) {
    return this.wish !== null && this.#isAnswer(frame) && this.forget();
  }

  /**
   * Forget the wish if its turn is no longer open in a snapshot.
   * @param {import('./types.js').Snapshot} snapshot
   * @returns {boolean} Whether it is forgotten.
   */
  settleSnapshot({ cards }) {
    const turn = cards.find((card) => card.card_id === this.wish?.turnCardId);
    return turn !== undefined && turn.status !== 'open' && this.forget();
  }

  #isAnswer({ type, envelope, payload }) {
    if (type === 'card.close') {
      return this.wish.turnCardId
        ? envelope.card_id === this.wish.turnCardId
        : envelope.card_kind === 'turn';
    }
    return type === 'session.event' && payload?.kind === 'updated' && Boolean(payload.inner?.state);
  }
}
