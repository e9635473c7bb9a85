/**
 * The wish that the server keeps a session before its first message, so that files can
 * be put into it. Asked again on the next socket until it is answered.
 *
 * Spec: Ruling E1.
 */
export class SessionRequest {
  #waiting = [];
  #isSent = false;

  /**
   * @returns {Promise<string>} The session's id, once it is kept.
   * @throws {import('./types.js').ErrorInfo} The server refused, or nobody waits for it
   *   any more.
   */
  ask() {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /**
   * @param {string} sessionId
   * @returns {Object<string, any>|null} The frame to send now, marked as sent.
   */
  takeFrame(sessionId) {
    if (this.#isSent || this.#waiting.length === 0) return null;
    this.#isSent = true;
    return { type: 'session.create', session_id: sessionId };
  }

  /** Ask again, as after a lost connection. */
  rewind() {
    this.#isSent = false;
  }

  /** A greeting is the answer if it was asked for on this socket. */
  settle(sessionId) {
    if (this.#isSent) this.#end(({ resolve }) => resolve(sessionId));
  }

  /**
   * Take an error that names nothing else for the answer.
   * @returns {boolean} Whether it was one.
   */
  refuse(error) {
    const isOurs = this.#isSent;
    if (isOurs) this.giveUp(error);
    return isOurs;
  }

  /** @param {import('./types.js').ErrorInfo} error */
  giveUp(error) {
    this.#end(({ reject }) => reject(error));
  }

  #end(tell) {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#isSent = false;
    waiting.forEach(tell);
  }
}
