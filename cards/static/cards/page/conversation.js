/**
 * One session on the page: its connection and its state, batched by frame.
 *
 * @typedef {import('../client/types.js').SessionState} SessionState
 */

import { Connection, initialState, loadSnapshot, reduceBatch } from '../client/index.js';
import { afterFrame } from './frames.js';
import { fetchSnapshot, isSignedOut, socketUrl } from './api.js';

export class Conversation {
  #handlers;
  #connection;
  #waiting = [];
  #isScheduled = false;
  #isClosed = false;
  #clockOffsetMs = 0;
  #kept = null;

  /**
   * @param {string} sessionId Empty for a new conversation.
   * @param {Object} handlers
   * @param {(state: SessionState, touched: Set<string>) => void} handlers.onChange
   * @param {() => void} handlers.onReset All cards are gone.
   * @param {(status: Object) => void} handlers.onStatus
   * @param {(entries: Object[]) => void} handlers.onOutbox
   * @param {(stopping: Object|null) => void} handlers.onStopping
   * @param {() => void} handlers.onAnswers
   * @param {() => void} handlers.onAnswerTooLate
   * @param {(reason: string) => void} handlers.onLost
   */
  constructor(sessionId, handlers) {
    this.#handlers = handlers;
    this.state = initialState(sessionId);
    this.isCaughtUp = false;
    /** The user's answers to prompts, by request id. */
    this.answers = new Map();
    this.#connection = new Connection({
      url: socketUrl(),
      sessionId,
      loadSnapshot: fetchSnapshot,
      isSignedOut,
      handlers: {
        onFrame: (frame) => this.#take(frame),
        onReset: () => this.#reset(),
        onSnapshot: (snapshot) => this.#restore(snapshot),
        onCaughtUp: () => this.#catchUp(),
        onStatus: handlers.onStatus,
        onOutbox: handlers.onOutbox,
        onStopping: handlers.onStopping,
        onAnswers: (answers) => this.#noteAnswers(answers),
        onAnswerTooLate: handlers.onAnswerTooLate,
        onLost: (reason) => this.#lose(reason),
      },
    });
  }

  get sessionId() {
    return this.#connection.sessionId;
  }

  get status() {
    return this.#connection.status;
  }

  /** The stop that is not answered yet; null when there is none. */
  get stopping() {
    return this.#connection.stopping;
  }

  open() {
    this.#connection.start();
  }

  close() {
    this.#isClosed = true;
    this.#connection.close();
  }

  /**
   * @param {string} text
   * @param {Object[]} [blocks] Files that go with it, as `user.message` has them.
   */
  send(text, blocks = []) {
    const words = text.trim() || blocks.length === 0 ? [{ type: 'text', text }] : [];
    return this.#connection.sendMessage(text, { content: [...words, ...blocks] });
  }

  /**
   * Have the session kept, so that files can be put into it. Spec: Ruling E1.
   * @returns {Promise<string>} Its id.
   * @throws {import('../client/types.js').ErrorInfo}
   */
  keepSession() {
    if (this.state.cards.size > 0) return Promise.resolve(this.sessionId);
    if (!this.#kept) {
      this.#kept = this.#connection.keepSession();
      this.#kept.catch(() => (this.#kept = null));
    }
    return this.#kept;
  }

  /** @param {import('../client/types.js').Stopping} wish */
  interrupt(wish) {
    this.#connection.interrupt(wish);
  }

  retryMessage(eventId) {
    this.#connection.retryMessage(eventId);
  }

  discardMessage(eventId) {
    this.#connection.discardMessage(eventId);
  }

  /** @param {string} requestId @param {string} decision @param {Object} payload */
  answer(requestId, decision, payload) {
    this.#connection.answer(requestId, decision, payload);
  }

  takeBackAnswer(requestId) {
    this.#connection.takeBackAnswer(requestId);
  }

  /** @returns {number} The server's time, in ms, as far as it is known. */
  now() {
    return Date.now() + this.#clockOffsetMs;
  }

  retryNow() {
    this.#connection.retryNow();
  }

  #take(frame) {
    if (frame.payload?.kind === 'opened') this.#setClock(frame.envelope.timestamp);
    this.#waiting.push(frame);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    afterFrame(() => this.#apply());
  }

  /** The greeting was just sent; its time shows how far the clocks are apart. */
  #setClock(timestamp) {
    this.#clockOffsetMs = Date.parse(timestamp) - Date.now();
  }

  #noteAnswers(answers) {
    this.answers = answers;
    this.#handlers.onAnswers();
  }

  #apply() {
    this.#isScheduled = false;
    if (this.#isClosed) return;
    const { state, touched } = reduceBatch(this.state, this.#waiting);
    this.#waiting = [];
    this.state = state;
    this.#handlers.onChange(state, touched);
  }

  #reset() {
    this.#waiting = [];
    this.state = initialState(this.#connection.sessionId);
    this.isCaughtUp = false;
    this.#handlers.onReset();
  }

  #restore(snapshot) {
    this.#waiting = [];
    this.state = loadSnapshot(this.state, snapshot);
    this.#handlers.onReset();
    this.#handlers.onChange(this.state, new Set(this.state.cards.keys()));
  }

  /** What was told before tells why. */
  #lose(reason) {
    this.#apply();
    this.#handlers.onLost(reason);
  }

  #catchUp() {
    if (this.isCaughtUp) return;
    this.#apply();
    this.isCaughtUp = true;
    this.#handlers.onChange(this.state, new Set());
  }
}
