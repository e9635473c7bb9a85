/**
 * The files that go with the next message of one session: on their way to the server,
 * there, or not taken by it.
 *
 * @typedef {import('./blocks.js').Attached} Attached
 *
 * @typedef {Object} Attachment
 * @property {string} key
 * @property {string} name
 * @property {number} sizeBytes
 * @property {'waiting'|'sending'|'ready'|'failed'} state
 * @property {number} share From 0 to 1, of what was sent.
 * @property {string} trouble Why it failed, for the user.
 * @property {Attached|null} attached
 *
 * @typedef {Object} Shelf
 * @property {string} sessionId Empty for a new conversation.
 * @property {Attachment[]} entries
 * @property {() => Promise<string>} keepSession Gives the id once files can be put there.
 */

import { shownName } from '../artifacts/names.js';
import { draftOf, keepDraft } from '../drafts.js';
import { attachedOf } from './blocks.js';
import { upload } from './upload.js';

/** Files that are sent at the same time; the others wait. */
const MAX_SENDING = 3;

export class Attachments {
  /** @type {Map<string, Shelf>} */
  #bySession = new Map();
  #shown;
  #handlers;
  #count = 0;

  /**
   * @param {Object} handlers
   * @param {() => void} handlers.onChange
   * @param {(text: string) => void} handlers.say Aloud.
   */
  constructor(handlers) {
    this.#handlers = handlers;
    this.#shown = this.#shelfOf('');
  }

  /**
   * Show those of another session.
   * @param {string} sessionId Empty for a new conversation.
   * @param {() => Promise<string>} keepSession See `Shelf`.
   */
  switchTo(sessionId, keepSession) {
    this.#shown = this.#shelfOf(sessionId);
    this.#shown.keepSession = keepSession;
    const underWay = this.entries.filter(({ state }) => state !== 'ready');
    this.#shown.entries = [...this.#kept(sessionId), ...underWay];
    this.#handlers.onChange();
  }

  #shelfOf(sessionId) {
    const known = this.#bySession.get(sessionId);
    if (known) return known;
    const shelf = { sessionId, entries: [], keepSession: () => new Promise(() => {}) };
    this.#bySession.set(sessionId, shelf);
    return shelf;
  }

  /** The new conversation has got its id. */
  rename(sessionId) {
    const shelf = this.#shown;
    if (sessionId === shelf.sessionId) return;
    this.#bySession.delete(shelf.sessionId);
    keepDraft(nameOf(shelf.sessionId), '');
    shelf.sessionId = sessionId;
    this.#bySession.set(sessionId, shelf);
    this.#changed(shelf);
  }

  /** @returns {Attachment[]} Those of the session that is shown. */
  get entries() {
    return this.#shown.entries;
  }

  get isBusy() {
    return this.entries.some(({ state }) => state === 'waiting' || state === 'sending');
  }

  /** @returns {Attachment|undefined} One that the server did not take. */
  get failed() {
    return this.entries.find(({ state }) => state === 'failed');
  }

  /** @param {Iterable<File>} files */
  add(files) {
    for (const file of files) this.entries.push({ ...this.#blank(file.name, file.size), file });
    this.#pump(this.#shown);
  }

  /** Give up a file, on its way or there. @param {string} key */
  remove(key) {
    const index = this.entries.findIndex((entry) => entry.key === key);
    if (index < 0) return;
    const [entry] = this.entries.splice(index, 1);
    entry.isRemoved = true;
    entry.cancel?.();
    this.#pump(this.#shown);
  }

  /** @param {string} key */
  retry(key) {
    const entry = this.entries.find((each) => each.key === key);
    if (entry?.state !== 'failed') return;
    Object.assign(entry, { state: 'waiting', share: 0, trouble: '' });
    this.#pump(this.#shown);
  }

  /** Take out what goes with a message now. @returns {Attached[]} */
  take() {
    const taken = this.entries.filter(({ state }) => state === 'ready');
    this.#shown.entries = this.entries.filter(({ state }) => state !== 'ready');
    this.#changed(this.#shown);
    return taken.map(({ attached }) => attached);
  }

  /** Put back what went with a message that was not sent. @param {Attached[]} files */
  giveBack(files) {
    this.entries.unshift(...files.map((attached) => this.#ready(attached)));
    this.#changed(this.#shown);
  }

  /** Let go of those of a session that is gone. @param {string} sessionId */
  forget(sessionId) {
    const entries = this.#bySession.get(sessionId)?.entries ?? [];
    for (const entry of entries) {
      entry.isRemoved = true;
      entry.cancel?.();
    }
    this.#bySession.delete(sessionId);
    keepDraft(nameOf(sessionId), '');
  }

  /** Keep them for when the session is shown again, with others before them. */
  keep(files = []) {
    keepFiles(this.#shown, files);
  }

  #blank(name, sizeBytes) {
    this.#count += 1;
    const key = `file-${this.#count}`;
    return { key, name, sizeBytes, state: 'waiting', share: 0, trouble: '', attached: null };
  }

  #ready(attached) {
    return { ...this.#blank(attached.name, attached.sizeBytes), state: 'ready', attached };
  }

  #kept(sessionId) {
    return JSON.parse(draftOf(nameOf(sessionId)) || '[]').map((attached) => this.#ready(attached));
  }

  #pump(shelf) {
    const sendingCount = shelf.entries.filter(({ state }) => state === 'sending').length;
    const waiting = shelf.entries.filter(({ state }) => state === 'waiting');
    const due = waiting.slice(0, Math.max(0, MAX_SENDING - sendingCount));
    for (const entry of due) this.#send(shelf, entry);
    this.#changed(shelf);
  }

  async #send(shelf, entry) {
    entry.state = 'sending';
    try {
      const sessionId = await shelf.keepSession();
      if (entry.isRemoved) return;
      const { done, cancel } = upload(entry.file, sessionId, (share) => {
        entry.share = share;
        this.#handlers.onChange();
      });
      entry.cancel = cancel;
      const attached = attachedOf(await done);
      Object.assign(entry, { state: 'ready', attached, name: attached.name, file: null });
      this.#handlers.say(`${shownName(attached.name)} is attached.`);
    } catch (error) {
      if (entry.isRemoved) return;
      const trouble = error.user_message || error.message;
      Object.assign(entry, { state: 'failed', trouble });
      this.#handlers.say(`${shownName(entry.name)} is not attached. ${trouble}`);
    }
    this.#pump(shelf);
  }

  #changed(shelf) {
    keepFiles(shelf);
    this.#handlers.onChange();
  }
}

function keepFiles({ sessionId, entries }, before = []) {
  const ready = entries.filter(({ state }) => state === 'ready').map(({ attached }) => attached);
  const files = [...before, ...ready];
  keepDraft(nameOf(sessionId), files.length > 0 ? JSON.stringify(files) : '');
}

/** No session id has a slash in it. */
function nameOf(sessionId) {
  return `files/${sessionId}`;
}
