/** A clock, a socket and a server's hand, all driven by the test. */

import { Connection } from '../../../../cards/static/cards/client/index.js';

/** Timers that fire when the test lets time pass. */
export class FakeTimers {
  #now = 0;
  #nextHandle = 1;
  #waiting = new Map();

  setTimeout = (action, delayMs) => {
    const handle = this.#nextHandle++;
    this.#waiting.set(handle, { at: this.#now + delayMs, action });
    return handle;
  };

  clearTimeout = (handle) => {
    this.#waiting.delete(handle);
  };

  pass(ms) {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#waiting].filter(([, t]) => t.at <= end);
      if (due.length === 0) break;
      const [handle, timer] = due.sort((a, b) => a[1].at - b[1].at)[0];
      this.#waiting.delete(handle);
      this.#now = timer.at;
      timer.action();
    }
    this.#now = end;
  }
}

class FakeSocket {
  sent = [];
  isClosed = false;

  constructor(url) {
    this.url = url;
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.isClosed = true;
  }
}

/** A connection under test and everything around it. */
export class Stage {
  constructor(options = {}) {
    this.timers = new FakeTimers();
    this.sockets = [];
    this.told = [];
    this.snapshots = [];
    this.isSignedOut = false;
    let ids = 0;
    const note = (name) => (value) => this.told.push([name, value]);
    this.connection = new Connection({
      url: 'ws://host/v1/ws',
      sessionId: 'sess_1',
      timers: this.timers,
      random: () => 1,
      newEventId: () => `c${(ids += 1)}`,
      loadSnapshot: async (sessionId) => {
        const next = this.snapshots.shift();
        if (next instanceof Error) throw next;
        note('loadSnapshot')(sessionId);
        return next ?? null;
      },
      isSignedOut: async () => this.isSignedOut,
      createSocket: (url) => {
        this.sockets.push(new FakeSocket(url));
        return this.socket;
      },
      handlers: Object.fromEntries(
        [
          'onFrame', 'onStatus', 'onReset', 'onSnapshot', 'onCaughtUp', 'onOutbox', 'onStopping',
          'onAnswers', 'onAnswerTooLate', 'onLost',
        ].map((name) => [name, note(name)]),
      ),
      ...options,
    });
  }

  get socket() {
    return this.sockets.at(-1);
  }

  /** Frames that the client sent on the present socket, but pings. */
  get sent() {
    return this.socket.sent.filter((frame) => frame.type !== 'ping');
  }

  /** What the client told of one kind. */
  toldOf(name) {
    return this.told.filter(([kind]) => kind === name).map(([, value]) => value);
  }

  /** Seqs of the session's frames that reached the page, in order. */
  get appliedSeqs() {
    return this.toldOf('onFrame')
      .filter((frame) => frame.envelope.trace_id !== 'tr_connection')
      .map((frame) => frame.envelope.seq);
  }

  serve(...frames) {
    for (const frame of frames) this.socket.onmessage({ data: JSON.stringify(frame) });
  }

  lose(code = 1006, reason = '') {
    this.socket.onclose({ code, reason });
  }

  /** Let promises that are settled run on. */
  async settle() {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
