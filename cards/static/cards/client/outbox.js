/**
 * The user's messages that the server has not shown in the log yet.
 *
 * Each goes out under its event_id until it is acknowledged; the server starts at
 * most one turn for an event_id, so sending again is safe.
 *
 * Spec: Rulings E8, E9, E28.
 *
 * @typedef {import('./types.js').Frame} Frame
 * @typedef {import('./types.js').OutboxEntry} OutboxEntry
 */

import { turnCardIdOf } from './turns.js';

export class Outbox {
  constructor() {
    /** @type {Map<string, OutboxEntry>} */
    this.byId = new Map();
  }

  /** @returns {OutboxEntry[]} Oldest first. */
  entries() {
    return [...this.byId.values()];
  }

  /**
   * @param {Object<string, any>} frame The `user.message`, with its event_id.
   * @param {string} text
   */
  add(frame, text) {
    const eventId = frame.event_id;
    this.byId.set(eventId, { eventId, text, frame, state: 'waiting', error: null });
  }

  /** Forget an entry that the user gave up; tell whether there was one. */
  remove(eventId) {
    return this.byId.delete(eventId);
  }

  /** Make every unacknowledged message go out again, as after a lost connection. */
  rewind() {
    this.#update((entry) => entry.state === 'sent', { state: 'waiting' });
  }

  /** Make a refused message go out again. */
  retry(eventId) {
    this.#update((entry) => entry.eventId === eventId, {
      state: 'waiting',
      error: null,
    });
  }

  /** @returns {Object<string, any>[]} Frames to send now, marked as sent. */
  takeWaiting() {
    const waiting = this.entries().filter((entry) => entry.state === 'waiting');
    this.#update((entry) => entry.state === 'waiting', { state: 'sent' });
    return waiting.map((entry) => entry.frame);
  }

  /**
   * Mark a message that must not be sent again by itself.
   * @param {string} eventId
   * @param {import('./types.js').ErrorInfo} error
   * @returns {boolean} Whether there was such a message.
   */
  refuse(eventId, error) {
    const known = this.byId.has(eventId);
    this.#update((entry) => entry.eventId === eventId, { state: 'refused', error });
    return known;
  }

  /** @returns {string} Event id of the message sent last; empty if none waits. */
  lastSentId() {
    return this.#sent().at(-1)?.eventId ?? '';
  }

  /** @returns {string} Event id of the message that waits for an answer, if it is one. */
  onlySentId() {
    const sent = this.#sent();
    return sent.length === 1 ? sent[0].eventId : '';
  }

  #sent() {
    return this.entries().filter((entry) => entry.state === 'sent');
  }

  /**
   * Take out what a frame acknowledges.
   * @param {Frame} frame
   * @returns {boolean} Whether anything was taken out.
   */
  acknowledge(frame) {
    return this.#acknowledgedIds(frame).filter((id) => this.byId.delete(id)).length > 0;
  }

  /**
   * Take out what a snapshot shows.
   * @param {import('./types.js').Snapshot} snapshot
   */
  acknowledgeSnapshot(snapshot) {
    for (const card of snapshot.cards) {
      if (card.card_kind === 'turn') this.byId.delete(card.payload?.input?.event_id);
    }
  }

  #acknowledgedIds(frame) {
    if (frame.type === 'card.add' && frame.envelope.card_kind === 'turn') {
      return [frame.payload?.input?.event_id];
    }
    if (frame.type !== 'session.event' || frame.payload?.kind !== 'updated') return [];
    const { queue, turn_card_id: turnCardId } = frame.payload.inner ?? {};
    const queued = Array.isArray(queue) ? queue.map((entry) => entry.event_id) : [];
    const known = [...this.byId.keys()].filter((id) => turnCardIdOf(id) === turnCardId);
    return [...queued, ...known];
  }

  #update(matches, fields) {
    // A new object per change lets a page compare entries by identity.
    for (const entry of this.entries()) {
      if (matches(entry)) this.byId.set(entry.eventId, { ...entry, ...fields });
    }
  }
}
