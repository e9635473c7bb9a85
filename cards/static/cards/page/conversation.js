/**
 * One session on the page: its connection and its state, batched by frame.
 *
 * @typedef {import('../client/types.js').SessionState} SessionState
 */

import { Connection, initialState, loadSnapshot, reduceBatch } from '../client/index.js';
import { afterFrame } from './frames.js';
import { fetchSnapshot, socketUrl } from './api.js';

export class Conversation {
  #handlers;
  #connection;
  #waiting = [];
  #isScheduled = false;
  #isClosed = false;

  /**
   * @param {string} sessionId Empty for a new conversation.
   * @param {Object} handlers
   * @param {(state: SessionState, touched: Set<string>) => void} handlers.onChange
   * @param {() => void} handlers.onReset All cards are gone.
   * @param {(status: Object) => void} handlers.onStatus
   * @param {(entries: Object[]) => void} handlers.onOutbox
   * @param {(reason: string) => void} handlers.onLost
   */
  constructor(sessionId, handlers) {
    this.#handlers = handlers;
    this.state = initialState(sessionId);
    /** Frames up to this seq were there before the page came; all until it knows. */
    this.historySeq = Infinity;
    this.isCaughtUp = false;
    this.#connection = new Connection({
      url: socketUrl(),
      sessionId,
      loadSnapshot: fetchSnapshot,
      handlers: {
        onFrame: (frame) => this.#take(frame),
        onReset: () => this.#reset(),
        onSnapshot: (snapshot) => this.#restore(snapshot),
        onCaughtUp: () => this.#catchUp(),
        onStatus: handlers.onStatus,
        onOutbox: handlers.onOutbox,
        onLost: handlers.onLost,
      },
    });
  }

  get sessionId() {
    return this.#connection.sessionId;
  }

  get status() {
    return this.#connection.status;
  }

  open() {
    this.#connection.start();
  }

  close() {
    this.#isClosed = true;
    this.#connection.close();
  }

  send(text) {
    return this.#connection.sendMessage(text);
  }

  retryMessage(eventId) {
    this.#connection.retryMessage(eventId);
  }

  discardMessage(eventId) {
    this.#connection.discardMessage(eventId);
  }

  retryNow() {
    this.#connection.retryNow();
  }

  #take(frame) {
    this.#waiting.push(frame);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    afterFrame(() => this.#apply());
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
    this.historySeq = Infinity;
    this.isCaughtUp = false;
    this.#handlers.onReset();
  }

  #restore(snapshot) {
    this.#waiting = [];
    this.state = loadSnapshot(this.state, snapshot);
    this.#handlers.onReset();
    this.#handlers.onChange(this.state, new Set(this.state.cards.keys()));
  }

  #catchUp() {
    if (this.isCaughtUp) return;
    this.#apply();
    this.isCaughtUp = true;
    this.historySeq = this.state.lastSeq;
    this.#handlers.onChange(this.state, new Set());
  }
}
