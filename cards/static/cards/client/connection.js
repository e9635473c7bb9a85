/**
 * A session's connection: socket, keep-alive, reconnect, resume, resending.
 *
 * What a page gets is the session's frames in seq order, each once, whatever
 * happens to the socket, plus the frames that concern this connection only.
 *
 * Spec: EMIT 2, 9, 16; Rulings E1-E10, E15, E25, E27.
 *
 * @typedef {import('./types.js').Answer} Answer
 * @typedef {import('./types.js').ConnectionStatus} ConnectionStatus
 * @typedef {import('./types.js').Frame} Frame
 * @typedef {import('./types.js').OutboxEntry} OutboxEntry
 * @typedef {import('./types.js').Snapshot} Snapshot
 * @typedef {import('./types.js').Stopping} Stopping
 *
 * @typedef {Object} Handlers All optional.
 * @property {(status: ConnectionStatus) => void} onStatus
 * @property {(frame: Frame) => void} onFrame A frame to reduce.
 * @property {(snapshot: Snapshot) => void} onSnapshot Replaces what came before.
 * @property {() => void} onReset Forget all cards: the trace is a new one.
 * @property {() => void} onCaughtUp What follows is live.
 * @property {(entries: OutboxEntry[]) => void} onOutbox
 * @property {(stopping: Stopping|null) => void} onStopping Null: it was answered.
 * @property {(answers: Map<string, Answer>) => void} onAnswers By request id.
 * @property {(requestId: string) => void} onAnswerTooLate Nobody waits for the answer
 *   that was given.
 * @property {(reason: string) => void} onLost The session cannot be continued.
 *
 * @typedef {Object} ConnectionOptions
 * @property {string} url Of the WebSocket endpoint, without query.
 * @property {string} [sessionId] Empty: the server mints one.
 * @property {(sessionId: string) => Promise<Snapshot|null>} loadSnapshot Null when
 *   the session does not exist.
 * @property {() => Promise<boolean>} [isSignedOut] Asked after a refusal, which does
 *   not tell its reason; false when nobody answers.
 * @property {Partial<Handlers>} [handlers]
 * @property {(url: string) => WebSocket} [createSocket]
 * @property {{setTimeout: Function, clearTimeout: Function}} [timers]
 * @property {() => number} [random]
 * @property {() => string} [newEventId]
 */

import { Answers } from './answers.js';
import { reconnectDelay } from './backoff.js';
import { POLICY_VIOLATION, TOO_LARGE } from './close_codes.js';
import { TraceCursor } from './cursor.js';
import { Deadlines } from './deadlines.js';
import { Outbox } from './outbox.js';
import { UNKNOWN_REQUEST_ID } from './prompts.js';
import { SessionRequest } from './session_request.js';
import { StopRequest } from './stop_request.js';

/** Ruling E25: a connection silent for 90 s is closed; EMIT 2.3 asks for 30 s. */
export const PING_INTERVAL_MS = 25_000;

/** A link that answers nothing for this long after a ping is dead. */
const PONG_DEADLINE_MS = 10_000;

/** A resume that is not answered in this time is asked on a new socket. */
const RESUME_DEADLINE_MS = 20_000;

/** A connection that lived this long ends the series of failures. */
const STABLE_AFTER_MS = 5_000;

/** Gaps right after a resume before the snapshot is taken instead. */
const MAX_REPEATED_GAPS = 3;

const MESSAGE_TOO_LARGE = {
  type: 'invalid_input',
  code: 'FRAME_TOO_LARGE',
  message: 'the server closed the connection with 1009',
  user_message: 'This is too large to send.',
  retryable: false,
};

const LEFT = {
  type: 'cancelled',
  message: 'the connection was closed by this client',
  user_message: 'The conversation was left.',
};

export class Connection {
  #options;
  #handlers;
  #deadlines;
  #cursor = new TraceCursor();
  #outbox = new Outbox();
  #stop = new StopRequest();
  #keeping = new SessionRequest();
  #answers = new Answers();
  #askedIds = new Set();
  #recoversPrompts = false;
  #socket = null;
  #attempt = 0;
  #isGreeted = false;
  #isResuming = false;
  #caughtUpAt = 0;
  #isCaughtUp = false;
  #repeatedGaps = 0;

  /** @param {ConnectionOptions} options */
  constructor(options) {
    this.#options = {
      createSocket: (url) => new WebSocket(url),
      isSignedOut: async () => false,
      random: Math.random,
      newEventId: mintEventId,
      timers: globalThis,
      ...options,
    };
    this.#handlers = options.handlers ?? {};
    this.#deadlines = new Deadlines(this.#options.timers);
    /** Public id of the session; given by the server when it was empty. */
    this.sessionId = options.sessionId ?? '';
    /** @type {ConnectionStatus} */
    this.status = { name: 'closed', attempt: 0, retryInMs: 0, reason: '' };
  }

  /** Open the connection and keep it open until `close`. */
  start() {
    this.#connect();
  }

  /** Close for good; unacknowledged messages stay unsent. */
  close() {
    this.#drop();
    this.#keeping.giveUp(LEFT);
    this.#setStatus('closed');
  }

  /** Try again at once instead of waiting, as when the network comes back. */
  retryNow() {
    if (this.status.name === 'waiting') this.#connect();
    else if (this.status.name === 'signed_out') this.#returnIfSignedIn();
  }

  /** The stop that is not answered yet. @returns {Stopping|null} */
  get stopping() {
    return this.#stop.wish;
  }

  /**
   * Send the user's words; they go out again until the server has them.
   * @param {string} text
   * @param {Object<string, any>} [fields] Other fields of `user.message`.
   * @returns {string} The message's event_id.
   */
  sendMessage(text, fields = {}) {
    const eventId = this.#options.newEventId();
    const content = [{ type: 'text', text }];
    const frame = { type: 'user.message', event_id: eventId, content, ...fields };
    this.#outbox.add(frame, text);
    this.#flush();
    this.#tell('onOutbox', this.#outbox.entries());
    return eventId;
  }

  /**
   * Have the server keep the session, which it otherwise does with the first message.
   * @returns {Promise<string>} Its id, when it is kept; see `SessionRequest`.
   */
  keepSession() {
    const kept = this.#keeping.ask();
    this.#flush();
    return kept;
  }

  /**
   * Stop a turn; asked again until it is answered.
   * @param {Stopping} wish
   */
  interrupt(wish) {
    this.#stop.ask(wish);
    this.#flush();
    this.#tell('onStopping', wish);
  }

  /** Send a refused message again. @param {string} eventId */
  retryMessage(eventId) {
    this.#outbox.retry(eventId);
    this.#flush();
    this.#tell('onOutbox', this.#outbox.entries());
  }

  /** Give up a message that was refused. @param {string} eventId */
  discardMessage(eventId) {
    this.#tellOutbox(this.#outbox.remove(eventId));
  }

  /**
   * Answer a prompt, once; the answer goes out as soon as it can.
   * @param {string} requestId
   * @param {string} decision
   * @param {Object<string, any>} payload
   */
  answer(requestId, decision, payload) {
    this.#tellAnswers(this.#answers.give(requestId, decision, payload));
    this.#flush();
  }

  /** Give up an answer that is not on its way. @param {string} requestId */
  takeBackAnswer(requestId) {
    this.#tellAnswers(this.#answers.takeBack(requestId));
  }

  #connect() {
    this.#drop();
    this.#setStatus('connecting');
    const socket = this.#options.createSocket(this.#address());
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code, reason }) => this.#lose(code, reason);
    // An error is always followed by a close, which carries the code.
    socket.onerror = () => {};
  }

  #address() {
    const query = this.sessionId
      ? `?session_id=${encodeURIComponent(this.sessionId)}`
      : '';
    return this.#options.url + query;
  }

  /** Detach from the socket without waiting for its closing handshake. */
  #drop() {
    this.#deadlines.clearAll();
    this.#isGreeted = false;
    this.#isResuming = false;
    this.#isCaughtUp = false;
    this.#askedIds.clear();
    this.#keeping.rewind();
    const socket = this.#socket;
    if (!socket) return;
    this.#socket = null;
    socket.onmessage = socket.onclose = null;
    socket.close();
  }

  #lose(code, reason) {
    if (code === TOO_LARGE) this.#refuseTooLarge();
    // The code of a refused handshake is the same as that of a server that is away.
    const mayBeRefused = !this.#isGreeted || code === POLICY_VIOLATION;
    this.#drop();
    this.#outbox.rewind();
    this.#stop.rewind();
    this.#answers.rewind();
    this.#tell('onOutbox', this.#outbox.entries());
    this.#tellAnswers(true);
    this.#waitToReconnect(code, reason);
    if (mayBeRefused) this.#stopIfSignedOut();
  }

  /** What went out last is not sent again, or it would break every connection. */
  #refuseTooLarge() {
    const isMessage = this.#outbox.refuse(this.#outbox.lastSentId(), MESSAGE_TOO_LARGE);
    if (!isMessage) this.#answers.refuseSent(MESSAGE_TOO_LARGE);
  }

  #waitToReconnect(code, reason = '') {
    const retryInMs = reconnectDelay(code, this.#attempt, this.#options.random);
    this.#attempt += 1;
    this.#setStatus('waiting', { retryInMs, reason });
    this.#deadlines.set('reconnect', retryInMs, () => this.#connect());
  }

  /** Who is signed out is refused again and again. Spec: Ruling E27. */
  async #stopIfSignedOut() {
    const attempt = this.#attempt;
    if (!(await this.#options.isSignedOut())) return;
    if (this.status.name !== 'waiting' || this.#attempt !== attempt) return;
    this.#drop();
    this.#setStatus('signed_out');
  }

  async #returnIfSignedIn() {
    if (await this.#options.isSignedOut()) return;
    if (this.status.name === 'signed_out') this.#connect();
  }

  #setStatus(name, { retryInMs = 0, reason = '' } = {}) {
    this.status = { name, attempt: this.#attempt, retryInMs, reason };
    this.#tell('onStatus', this.status);
  }

  #receive(data) {
    this.#deadlines.clear('pong');
    const frame = parseFrame(data);
    if (!frame?.envelope) return;
    const verdict = this.#cursor.take(frame.envelope);
    if (frame.type === 'prompt.user') this.#askedIds.add(frame.payload?.request_id);
    if (verdict === 'foreign') this.#receiveForeign(frame);
    else if (verdict === 'next') this.#receiveNext(frame);
    else if (verdict === 'gap') this.#receiveGap();
    else this.#receiveCopy(frame);
  }

  /** A prompt that is open comes again under its old seq. Spec: Ruling E3. */
  #receiveCopy(frame) {
    if (frame.type !== 'prompt.user') return;
    this.#tell('onFrame', frame);
    this.#flush();
  }

  #receiveNext(frame) {
    this.#repeatedGaps = 0;
    this.#acknowledge(frame);
    this.#tell('onFrame', frame);
    this.#checkCaughtUp();
  }

  /** Frames that overtake a resume are sent again by it; others are asked for. */
  #receiveGap() {
    if (this.#isResuming) return;
    this.#repeatedGaps += 1;
    if (this.#repeatedGaps > MAX_REPEATED_GAPS) this.#takeSnapshot();
    else this.#resume();
  }

  #receiveForeign(frame) {
    const { kind, inner } = frame.payload ?? {};
    this.#acknowledge(frame);
    if (kind === 'error') this.#noteRefusal(frame);
    if (kind !== 'opened') this.#tell('onFrame', frame);
    if (kind === 'opened') this.#handleOpened(frame, inner);
    else if (kind === 'resumed') this.#handleResumed(inner);
    else if (kind === 'resume_failed') this.#takeSnapshot();
  }

  #handleOpened(frame, inner) {
    const { session_id: givenId } = frame.envelope;
    // A session that is not ours is answered by a fresh one (Ruling E27); to show
    // that under the asked address would be a lie.
    if (this.sessionId && givenId !== this.sessionId) return this.#giveUp();
    this.sessionId = givenId;
    this.#isGreeted = true;
    this.#keeping.settle(givenId);
    this.#recoversPrompts = inner.capabilities?.recovery === true;
    if (inner.trace_id !== this.#cursor.traceId) {
      this.#cursor.moveTo(inner.trace_id, 0);
      this.#isCaughtUp = false;
      this.#answers.clear();
      this.#tell('onReset');
    }
    this.#tell('onFrame', frame);
    this.#setStatus('open');
    this.#deadlines.set('stable', STABLE_AFTER_MS, () => (this.#attempt = 0));
    this.#schedulePing();
    // A session without a row has no trace to resume (Ruling E1).
    if (inner.last_seq === 0 && this.#cursor.lastSeq === 0) this.#handleResumed(null);
    else this.#resume();
  }

  #resume() {
    this.#isResuming = true;
    this.#isCaughtUp = false;
    const { traceId, lastSeq } = this.#cursor;
    this.#send({ type: 'session.resume', trace_id: traceId, last_seq: lastSeq });
    this.#deadlines.set('resume', RESUME_DEADLINE_MS, () =>
      this.#lose(0, 'resume unanswered'),
    );
  }

  #handleResumed(inner) {
    // "Everything kept" may begin behind what was pruned, or be nothing at all.
    if (inner?.from_seq > this.#cursor.lastSeq + 1) return void this.#takeSnapshot();
    this.#isResuming = false;
    this.#deadlines.clear('resume');
    this.#caughtUpAt = inner?.to_seq ?? 0;
    this.#checkCaughtUp();
  }

  #checkCaughtUp() {
    if (this.#isCaughtUp || this.#isResuming) return;
    if (this.#cursor.lastSeq < this.#caughtUpAt) return;
    this.#isCaughtUp = true;
    this.#tell('onCaughtUp');
    this.#flush();
  }

  /** Ruling E5: after `resume_failed` the snapshot is the new starting point. */
  async #takeSnapshot() {
    const socket = this.#socket;
    this.#isResuming = true;
    this.#deadlines.clear('resume');
    let snapshot;
    try {
      snapshot = await this.#options.loadSnapshot(this.sessionId);
    } catch (error) {
      if (socket === this.#socket) this.#lose(0, `snapshot failed: ${error.message}`);
      return;
    }
    if (socket !== this.#socket) return;
    if (snapshot) this.#startFrom(snapshot);
    else this.#giveUp();
  }

  #startFrom(snapshot) {
    // A server that refuses its own snapshot's position must not be asked in a loop.
    const isRepeated =
      this.#deadlines.has('snapshot') && snapshot.last_seq <= this.#cursor.lastSeq;
    if (isRepeated) return void this.#lose(0, 'snapshot cannot be resumed');
    this.#deadlines.set('snapshot', RESUME_DEADLINE_MS, () => {});
    this.#repeatedGaps = 0;
    this.#cursor.moveTo(snapshot.trace_id, snapshot.last_seq);
    this.#outbox.acknowledgeSnapshot(snapshot);
    this.#answers.settleSnapshot(snapshot);
    this.#tell('onOutbox', this.#outbox.entries());
    this.#tellAnswers(true);
    this.#tellStopping(this.#stop.settleSnapshot(snapshot));
    this.#tell('onSnapshot', snapshot);
    this.#resume();
  }

  #giveUp() {
    this.#drop();
    this.#setStatus('closed', { reason: 'session_not_found' });
    this.#tell('onLost', 'session_not_found');
  }

  #schedulePing() {
    this.#deadlines.set('ping', PING_INTERVAL_MS, () => {
      this.#send({ type: 'ping' });
      this.#deadlines.set('pong', PONG_DEADLINE_MS, () => this.#lose(0, 'no answer'));
      this.#schedulePing();
    });
  }

  /**
   * Send what waits, after the replay, so that what it answers is not sent again; the
   * stop last, for it may mean the turn of a message that goes out with it.
   */
  #flush() {
    if (!this.#isCaughtUp) return;
    const keep = this.#keeping.takeFrame(this.sessionId);
    if (keep) this.#send(keep);
    for (const frame of this.#outbox.takeWaiting()) this.#send(frame);
    const answers = this.#answers.takeFrames((id) => this.#isAsked(id));
    for (const frame of answers) this.#send(frame);
    this.#tellAnswers(answers.length > 0);
    const stop = this.#stop.takeFrame(this.#cursor.traceId);
    if (stop) this.#send(stop);
  }

  /** Only a server that sends open prompts again tells by silence that one is not. */
  #isAsked(requestId) {
    return !this.#recoversPrompts || this.#askedIds.has(requestId);
  }

  #acknowledge(frame) {
    this.#tellOutbox(this.#outbox.acknowledge(frame));
    this.#tellAnswers(this.#answers.settle(frame));
    this.#tellStopping(this.#stop.settle(frame));
  }

  /**
   * Tell what an error refuses: the message it names, else the wish to keep the
   * session, or the only message that waits for an answer. Where none waits, it is the stop that had no effect.
   */
  #noteRefusal(frame) {
    const { error } = frame.payload.inner ?? {};
    const { event_id: named, request_id: requestId } = error?.details ?? {};
    if (requestId) return void this.#noteRefusedAnswer(requestId, error);
    if (!named && this.#keeping.refuse(error)) return;
    const eventId = named ?? this.#outbox.onlySentId();
    this.#tellOutbox(this.#outbox.refuse(eventId, error));
    if (!this.#outbox.lastSentId() && !eventId) this.#tellStopping(this.#stop.forget());
  }

  #noteRefusedAnswer(requestId, error) {
    if (error.code !== UNKNOWN_REQUEST_ID) {
      this.#tellAnswers(this.#answers.refuse(requestId, error));
    } else if (this.#answers.forget(requestId)) {
      this.#tellAnswers(true);
      this.#tell('onAnswerTooLate', requestId);
    }
  }

  #tellOutbox(hasChanged) {
    if (hasChanged) this.#tell('onOutbox', this.#outbox.entries());
  }

  #tellStopping(hasChanged) {
    if (hasChanged) this.#tell('onStopping', this.#stop.wish);
  }

  #tellAnswers(hasChanged) {
    if (hasChanged) this.#tell('onAnswers', this.#answers.all());
  }

  #send(frame) {
    this.#socket?.send(JSON.stringify(frame));
  }

  #tell(handler, ...args) {
    this.#handlers[handler]?.(...args);
  }
}

/** What is not JSON is no frame; a lost one shows as a gap and is asked for again. */
function parseFrame(data) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

function mintEventId() {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return `c_${[...bytes].map((b) => b.toString(16).padStart(2, '0')).join('')}`;
}
