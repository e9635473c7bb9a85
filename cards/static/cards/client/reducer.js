/**
 * The card forest: state + frames → state, without side effects.
 *
 * A state that was handed out is never changed. Within one batch each container is
 * copied at most once, so that a long replay costs time in its length and not in
 * its square.
 *
 * Spec: EMIT 15.1, 15.2.
 *
 * @typedef {import('./types.js').Card} Card
 * @typedef {import('./types.js').Frame} Frame
 * @typedef {import('./types.js').SessionState} SessionState
 * @typedef {import('./types.js').Snapshot} Snapshot
 */

import { StateDraft } from './draft.js';
import { noteAnswerError, settlePrompt, takePrompt, withPromptsOf } from './prompts.js';
import { lastTurn } from './turns.js';

/** Ticks kept per card. Spec: EMIT 15.2. */
export const MAX_TICKS = 50;

/** Session errors kept; older ones have long been read. */
const MAX_ERRORS = 100;

/** EMIT 6.4: these ticks are never dropped on the wire, so they outlive heartbeats. */
const REMARK_KINDS = new Set(['intent', 'note', 'escalation']);

/**
 * Return the state before the first frame.
 * @param {string} [sessionId]
 * @returns {SessionState}
 */
export function initialState(sessionId = '') {
  return {
    sessionId,
    traceId: '',
    lastSeq: 0,
    title: '',
    model: '',
    protocolVersion: '',
    capabilities: {},
    queue: [],
    errors: [],
    prompts: new Map(),
    cards: new Map(),
    tree: new Map(),
  };
}

/**
 * Apply one frame.
 * @param {SessionState} state
 * @param {Frame} frame
 * @returns {SessionState}
 */
export function reduce(state, frame) {
  return reduceBatch(state, [frame]).state;
}

/**
 * Apply frames in their order.
 * @param {SessionState} state
 * @param {Iterable<Frame>} frames
 * @returns {{state: SessionState, touched: Set<string>}} `touched`: ids of the cards
 *   that are new or differ from before.
 */
export function reduceBatch(state, frames) {
  const draft = new StateDraft(state);
  for (const frame of frames) applyFrame(draft, frame);
  return draft.finish();
}

/**
 * Replace the forest by a snapshot; what a snapshot does not tell stays.
 *
 * A snapshot joins a channel's blocks; their text counts as block 0 from then on. It
 * tells nothing of the queue, but what has a turn waits no longer.
 * @param {SessionState} state
 * @param {Snapshot} snapshot
 * @returns {SessionState}
 */
export function loadSnapshot(state, snapshot) {
  const cards = new Map();
  const tree = new Map();
  for (const stored of snapshot.cards) {
    const card = cardOfSnapshot(stored);
    cards.set(card.cardId, card);
    const siblings = tree.get(card.parentCardId);
    if (siblings) siblings.push(card.cardId);
    else tree.set(card.parentCardId, [card.cardId]);
  }
  const next = {
    ...state,
    sessionId: snapshot.session_id,
    traceId: snapshot.trace_id,
    lastSeq: snapshot.last_seq,
    queue: [...cards.values()].reduce(withoutTurn, state.queue),
    cards,
    tree,
  };
  return { ...next, prompts: withPromptsOf(next, snapshot.prompts) };
}

/**
 * Return the text of a channel, its blocks in order of their index.
 * @param {Card} card
 * @param {string} channel
 * @returns {string} Empty when nothing came.
 */
export function channelText(card, channel) {
  const blocks = card.channels.get(channel);
  if (!blocks) return '';
  if (blocks.size === 1) return blocks.values().next().value;
  return [...blocks.keys()].sort((a, b) => a - b).map((i) => blocks.get(i)).join('');
}

/**
 * Return the ids of the cards below a card, in order of their `card.add`.
 * @param {SessionState} state
 * @param {string} [cardId] Empty for the roots.
 * @returns {readonly string[]}
 */
export function childrenOf(state, cardId = '') {
  return state.tree.get(cardId) ?? [];
}

function cardOfSnapshot(stored) {
  const channels = Object.entries(stored.channels ?? {});
  return {
    cardId: stored.card_id,
    parentCardId: stored.parent_card_id ?? '',
    cardKind: stored.card_kind,
    status: stored.status,
    payload: stored.payload ?? {},
    channels: new Map(channels.map(([name, text]) => [name, new Map([[0, text]])])),
    ticks: [],
    remarks: [],
    latest: {},
    hint: stored.hint ?? {},
    metrics: stored.metrics ?? null,
    endedBy: null,
    agentId: stored.agent_id ?? '',
    agentRole: '',
    events: 0,
    addedAt: '',
    updatedAt: '',
  };
}

const CARD_ACTIONS = {
  'card.set': setFields,
  'card.append': appendText,
  'card.tick': addTick,
  'card.close': closeCard,
};

function applyFrame(draft, frame) {
  const { envelope } = frame;
  if (!envelope) return;
  draft.advance(envelope);
  if (frame.type === 'card.add') {
    const card = newCard(frame);
    draft.addCard(card);
    draft.assign({ queue: withoutTurn(draft.next.queue, card) });
  } else if (frame.type === 'session.event') {
    applySessionEvent(draft, frame);
  } else if (frame.type === 'prompt.user') {
    takePrompt(draft, frame);
  } else if (frame.type === 'prompt.reply') {
    settlePrompt(draft, frame);
  } else if (Object.hasOwn(CARD_ACTIONS, frame.type)) {
    const card = draft.writableCard(envelope.card_id);
    if (!card) return;
    CARD_ACTIONS[frame.type](card, frame.payload ?? {}, frame);
    card.events += 1;
    card.updatedAt = envelope.timestamp;
  }
}

function newCard({ envelope, payload, hint }) {
  return {
    cardId: envelope.card_id,
    parentCardId: envelope.parent_card_id ?? '',
    cardKind: envelope.card_kind,
    status: 'open',
    payload: payload ?? {},
    channels: new Map(),
    ticks: [],
    remarks: [],
    latest: {},
    hint: hint ?? {},
    metrics: null,
    endedBy: null,
    agentId: envelope.agent_id ?? '',
    agentRole: envelope.agent_role ?? '',
    events: 1,
    addedAt: envelope.timestamp,
    updatedAt: envelope.timestamp,
  };
}

/** A message waits until its turn begins. Spec: Rulings E9, E28. */
function withoutTurn(queue, { cardKind, payload }) {
  if (cardKind !== 'turn' || queue.length === 0) return queue;
  return queue.filter((entry) => entry.event_id !== payload.input?.event_id);
}

function setFields(card, payload, frame) {
  card.payload = { ...card.payload, ...payload };
  if (frame.hint) card.hint = { ...card.hint, ...frame.hint };
}

function appendText(card, payload) {
  const text = payload.chunk ?? payload.partial_json ?? '';
  const index = payload.index ?? 0;
  let blocks = card.channels.get(payload.channel);
  if (!blocks) card.channels.set(payload.channel, (blocks = new Map()));
  blocks.set(index, (blocks.get(index) ?? '') + text);
}

function addTick(card, payload, frame) {
  const tick = {
    kind: payload.kind,
    inner: payload.inner ?? {},
    timestamp: frame.envelope.timestamp,
  };
  pushBounded(card.ticks, tick, MAX_TICKS);
  if (REMARK_KINDS.has(tick.kind)) pushBounded(card.remarks, tick, MAX_TICKS);
  card.latest = { ...card.latest, [tick.kind]: tick };
}

function closeCard(card, payload, frame) {
  card.status = payload.status;
  card.payload = {
    ...card.payload,
    ...(payload.error ? { error: payload.error } : {}),
    ...(isRecord(payload.inner) ? payload.inner : {}),
  };
  if (frame.metrics) card.metrics = frame.metrics;
  if (frame.hint) card.hint = { ...card.hint, ...frame.hint };
}

function applySessionEvent(draft, frame) {
  const inner = frame.payload?.inner ?? {};
  switch (frame.payload?.kind) {
    case 'opened':
      draft.assign({
        sessionId: frame.envelope.session_id,
        traceId: inner.trace_id ?? draft.next.traceId,
        model: inner.model ?? draft.next.model,
        protocolVersion: inner.protocol_version ?? '',
        capabilities: inner.capabilities ?? {},
      });
      break;
    case 'updated':
      draft.assign(pickChanged(inner, ['title', 'model', 'queue']));
      break;
    case 'error':
      if (noteAnswerError(draft, inner.error)) break;
      draft.assign({ errors: withError(draft.next.errors, frame, inner) });
      noteCutOff(draft, frame, inner);
      break;
    default: // resumed and resume_failed concern the connection; others are unknown
  }
}

function withError(errors, { envelope }, inner) {
  if (errors.some((known) => known.eventId === envelope.event_id)) return errors;
  const entry = {
    eventId: envelope.event_id,
    traceId: envelope.trace_id,
    seq: envelope.seq,
    timestamp: envelope.timestamp,
    error: inner.error ?? { type: 'internal', message: 'error without a body' },
  };
  return [...errors, entry].slice(-MAX_ERRORS);
}

/**
 * A logged error right after the close of a turn tells what ended it; a cancelled
 * turn's close has no place for that. Spec: EMIT 8; Ruling E11.
 */
function noteCutOff(draft, { envelope }, { error }) {
  const turn = lastTurn(draft.next);
  const isLogged = envelope.trace_id === draft.next.traceId;
  if (!error || !isLogged || turn?.status !== 'cancelled') return;
  draft.writableCard(turn.cardId).endedBy = error;
}

function pickChanged(source, names) {
  const changed = names.filter((name) => source[name] !== undefined);
  return Object.fromEntries(changed.map((name) => [name, source[name]]));
}

function pushBounded(list, entry, limit) {
  list.push(entry);
  if (list.length > limit) list.shift();
}

function isRecord(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
