/** The reducer's rules. Spec: EMIT 15.1, 15.2. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import {
  channelText, childrenOf, initialState, lastTurn, loadSnapshot, MAX_TICKS, reduce, reduceBatch,
  runningTurn,
} from '../../../../cards/static/cards/client/index.js';
import { add, ephemeral, logged, on, opened, SESSION, TRACE } from './frames.mjs';

function stateAfter(...frames) {
  return reduceBatch(initialState(SESSION), [opened(0), ...frames]).state;
}

describe('card.add', () => {
  it('makes an open card under its parent', () => {
    const state = stateAfter(
      add(1, 't', 'turn', { payload: { turn_no: 1 }, hint: { title: 'Turn 1' } }),
      add(2, 'm', 'message', { parent_card_id: 't', agent_id: 'main' }),
    );

    const card = state.cards.get('m');
    assert.equal(card.status, 'open');
    assert.equal(card.cardKind, 'message');
    assert.equal(card.agentId, 'main');
    assert.equal(state.cards.get('t').hint.title, 'Turn 1');
    assert.deepEqual(childrenOf(state), ['t']);
    assert.deepEqual(childrenOf(state, 't'), ['m']);
  });

  it('keeps children in order of their add', () => {
    const state = stateAfter(
      add(1, 't', 'turn'),
      add(2, 'b', 'tool', { parent_card_id: 't' }),
      add(3, 'a', 'tool', { parent_card_id: 't' }),
    );

    assert.deepEqual(childrenOf(state, 't'), ['b', 'a']);
  });

  it('keeps a kind it does not know', () => {
    const state = stateAfter(add(1, 'x', 'hologram', { payload: { depth: 3 } }));

    assert.equal(state.cards.get('x').payload.depth, 3);
  });

  it('takes the place of a card with the same id', () => {
    const state = stateAfter(
      add(1, 'a', 'turn'),
      add(2, 'b', 'turn'),
      add(3, 'c', 'tool', { parent_card_id: 'a' }),
      add(4, 'c', 'tool', { parent_card_id: 'b' }),
    );

    assert.deepEqual(childrenOf(state, 'a'), []);
    assert.deepEqual(childrenOf(state, 'b'), ['c']);
  });
});

describe('card.set', () => {
  it('overwrites the fields it carries and no others', () => {
    const state = stateAfter(
      add(1, 's', 'step', { payload: { step_id: 's1', status: 'queued' } }),
      on(2, 'set', 's', { status: 'running' }),
    );

    assert.deepEqual(state.cards.get('s').payload, { step_id: 's1', status: 'running' });
  });
});

describe('card.append', () => {
  it('joins the chunks of a channel', () => {
    const state = stateAfter(
      add(1, 'm', 'message'),
      on(2, 'append', 'm', { channel: 'text', chunk: 'Hel' }),
      on(3, 'append', 'm', { channel: 'text', chunk: 'lo' }),
      on(4, 'append', 'm', { channel: 'tool_input', partial_json: '{"a"' }),
    );

    assert.equal(channelText(state.cards.get('m'), 'text'), 'Hello');
    assert.equal(channelText(state.cards.get('m'), 'tool_input'), '{"a"');
    assert.equal(channelText(state.cards.get('m'), 'thinking'), '');
  });

  it('joins the blocks in order of their index, not of their arrival', () => {
    const state = stateAfter(
      add(1, 'm', 'message'),
      on(2, 'append', 'm', { channel: 'text', index: 10, chunk: 'C' }),
      on(3, 'append', 'm', { channel: 'text', index: 2, chunk: 'B' }),
      on(4, 'append', 'm', { channel: 'text', chunk: 'A' }),
      on(5, 'append', 'm', { channel: 'text', index: 10, chunk: 'c' }),
    );

    assert.equal(channelText(state.cards.get('m'), 'text'), 'ABCc');
  });
});

describe('card.tick', () => {
  const ticks = (count, kind = 'heartbeat') =>
    Array.from({ length: count }, (_, i) =>
      on(i + 2, 'tick', 'x', { kind, inner: { uptime_ms: i } }),
    );

  it('keeps the newest 50', () => {
    const state = stateAfter(add(1, 'x', 'tool'), ...ticks(60));

    const kept = state.cards.get('x').ticks;
    assert.equal(kept.length, MAX_TICKS);
    assert.equal(kept[0].inner.uptime_ms, 10);
    assert.equal(kept.at(-1).inner.uptime_ms, 59);
  });

  it('knows the newest of each kind and remembers remarks behind heartbeats', () => {
    const state = stateAfter(
      add(1, 'x', 'tool'),
      on(2, 'tick', 'x', { kind: 'note', inner: { text: 'fresh fetch' } }),
      on(3, 'tick', 'x', { kind: 'progress', inner: { progress_pct: 0.4 } }),
      ...ticks(60),
    );

    const card = state.cards.get('x');
    assert.equal(card.latest.progress.inner.progress_pct, 0.4);
    assert.equal(card.latest.heartbeat.inner.uptime_ms, 59);
    assert.deepEqual(card.remarks.map((tick) => tick.inner.text), ['fresh fetch']);
  });
});

describe('card.close', () => {
  it('sets the status, merges inner, takes error and metrics', () => {
    const error = { type: 'tool_timeout', message: 'too slow' };
    const state = stateAfter(
      add(1, 'x', 'tool', { payload: { name: 'Bash', input: { command: 'ls' } } }),
      on(2, 'close', 'x', { status: 'failed', error, inner: { output: 'partial' } }, {
        metrics: { duration_ms: 50 },
      }),
    );

    const card = state.cards.get('x');
    assert.equal(card.status, 'failed');
    assert.deepEqual(card.payload, {
      name: 'Bash', input: { command: 'ls' }, error, output: 'partial',
    });
    assert.deepEqual(card.metrics, { duration_ms: 50 });
  });

  it('leaves the payload alone without inner', () => {
    const state = stateAfter(
      add(1, 'x', 'tool', { payload: { name: 'Bash' } }),
      on(2, 'close', 'x', { status: 'ok' }),
    );

    assert.deepEqual(state.cards.get('x').payload, { name: 'Bash' });
  });
});

describe('what is unknown', () => {
  it('changes nothing when the card was never added', () => {
    const before = stateAfter(add(1, 't', 'turn'));

    for (const action of ['set', 'append', 'tick', 'close']) {
      const { state, touched } = reduceBatch(before, [on(2, action, 'ghost', {})]);
      assert.equal(state.cards.size, 1);
      assert.equal(touched.size, 0);
    }
  });

  it('ignores frame types and session event kinds of a later protocol', () => {
    const state = stateAfter(
      logged(1, 'card.teleport', { card_id: 'x' }),
      logged(2, 'session.event', { payload: { kind: 'celebrated', inner: {} } }),
      { type: 'pong' },
    );

    assert.equal(state.cards.size, 0);
    assert.equal(state.lastSeq, 2);
  });
});

describe('session.event', () => {
  it('opened tells the session, trace, model and capabilities', () => {
    const state = reduce(initialState(), opened(7));

    assert.equal(state.sessionId, SESSION);
    assert.equal(state.traceId, TRACE);
    assert.equal(state.model, 'model-1');
    assert.equal(state.protocolVersion, '2.0');
    assert.deepEqual(state.capabilities, { recovery: true });
    assert.equal(state.lastSeq, 0, 'what was not applied is not counted');
  });

  it('updated changes what it carries', () => {
    const queue = [{ event_id: 'c2', text: 'next' }];
    const state = stateAfter(
      logged(1, 'session.event', { payload: { kind: 'updated', inner: { title: 'Locks' } } }),
      logged(2, 'session.event', { payload: { kind: 'updated', inner: { queue } } }),
      logged(3, 'session.event', { payload: { kind: 'updated', inner: { model: 'm-2' } } }),
    );

    assert.equal(state.title, 'Locks');
    assert.equal(state.model, 'm-2');
    assert.deepEqual(state.queue, queue);
  });

  it('error is kept once per event', () => {
    const error = { type: 'internal', message: 'boom', user_message: 'Sorry.' };
    const frame = ephemeral('error', { error });
    const state = stateAfter(frame, frame);

    assert.equal(state.errors.length, 1);
    assert.deepEqual(state.errors[0].error, error);
    assert.equal(state.errors[0].traceId, 'tr_connection');
  });
});

describe('the queue', () => {
  const queue = [{ event_id: 'c2', text: 'next' }, { event_id: 'c3', text: 'last' }];
  const updated = (seq) =>
    logged(seq, 'session.event', { payload: { kind: 'updated', inner: { queue } } });
  const begun = (seq) =>
    add(seq, 'turn_c2', 'turn', { payload: { input: { event_id: 'c2', text: 'next' } } });

  it('loses a message whose turn begins', () => {
    assert.deepEqual(stateAfter(updated(1), begun(2)).queue, [queue[1]]);
  });

  it('is not touched by other cards', () => {
    assert.deepEqual(stateAfter(updated(1), add(2, 'c2', 'tool')).queue, queue);
  });

  it('holds nothing that a snapshot shows as a turn', () => {
    const turn = { card_id: 'turn_c2', card_kind: 'turn', status: 'open', payload: { input: { event_id: 'c2' } } };
    const state = loadSnapshot(stateAfter(updated(1)), {
      session_id: SESSION, trace_id: TRACE, last_seq: 9, state: 'running', cards: [turn], prompts: [],
    });

    assert.deepEqual(state.queue, [queue[1]]);
  });
});

describe('turns', () => {
  it('run while the newest one is open', () => {
    const before = stateAfter(add(1, 't1', 'turn'), add(2, 'm', 'message', { parent_card_id: 't1' }));
    const between = reduceBatch(before, [on(3, 'close', 't1', { status: 'ok' })]).state;
    const after = reduceBatch(between, [add(4, 't2', 'turn'), add(5, 's', 'system')]).state;

    assert.equal(runningTurn(initialState()), undefined);
    assert.equal(runningTurn(before).cardId, 't1');
    assert.equal(runningTurn(between), undefined);
    assert.equal(lastTurn(between).cardId, 't1');
    assert.equal(runningTurn(after).cardId, 't2');
  });

  it('that were cut off are told why by the error behind their close', () => {
    const error = { type: 'internal', code: 'SERVER_STOPPED', message: 'stopped' };
    const told = (seq, status) => stateAfter(
      add(1, 't', 'turn'),
      on(2, 'close', 't', { status }),
      logged(seq, 'session.event', { payload: { kind: 'error', inner: { error } } }),
    );

    assert.deepEqual(told(3, 'cancelled').cards.get('t').endedBy, error);
    assert.equal(told(3, 'ok').cards.get('t').endedBy, null);
  });

  it('are not told the errors of a connection', () => {
    const state = stateAfter(
      add(1, 't', 'turn'),
      on(2, 'close', 't', { status: 'cancelled' }),
      ephemeral('error', { error: { type: 'invalid_input', message: 'no' } }),
    );

    assert.equal(state.cards.get('t').endedBy, null);
  });
});

describe('purity', () => {
  it('never changes a state that was handed out', () => {
    const before = stateAfter(
      add(1, 't', 'turn', { payload: { turn_no: 1 } }),
      add(2, 'm', 'message', { parent_card_id: 't' }),
      on(3, 'append', 'm', { channel: 'text', chunk: 'one' }),
      on(4, 'tick', 'm', { kind: 'note', inner: { text: 'a' } }),
    );
    const copy = structuredClone(before);

    reduceBatch(before, [
      on(5, 'append', 'm', { channel: 'text', chunk: 'two' }),
      on(6, 'tick', 'm', { kind: 'note', inner: { text: 'b' } }),
      on(7, 'set', 't', { turn_no: 2 }),
      add(8, 'n', 'message', { parent_card_id: 't' }),
      on(9, 'close', 'm', { status: 'ok', inner: { stop_reason: 'end_turn' } }),
    ]);

    assert.deepEqual(before, copy);
  });

  it('gives the same state however the frames are batched', () => {
    const frames = [
      opened(0),
      add(1, 't', 'turn'),
      add(2, 'm', 'message', { parent_card_id: 't' }),
      on(3, 'append', 'm', { channel: 'text', chunk: 'a' }),
      on(4, 'append', 'm', { channel: 'text', chunk: 'b' }),
      on(5, 'close', 'm', { status: 'ok' }),
    ];

    const whole = reduceBatch(initialState(), frames).state;
    const single = frames.reduce(reduce, initialState());

    assert.deepEqual(single, whole);
  });

  it('names the cards that changed and shares the others', () => {
    const before = stateAfter(add(1, 'a', 'turn'), add(2, 'b', 'turn'));

    const { state, touched } = reduceBatch(before, [on(3, 'close', 'b', { status: 'ok' })]);

    assert.deepEqual([...touched], ['b']);
    assert.equal(state.cards.get('a'), before.cards.get('a'));
    assert.notEqual(state.cards.get('b'), before.cards.get('b'));
  });

  it('counts only the session trace in lastSeq', () => {
    const state = stateAfter(add(1, 'a', 'turn'), ephemeral('resumed', {}));

    assert.equal(state.lastSeq, 1);
  });
});

describe('a snapshot', () => {
  const snapshot = {
    session_id: SESSION,
    trace_id: TRACE,
    last_seq: 40,
    state: 'running',
    cards: [
      { card_id: 't', card_kind: 'turn', parent_card_id: null, agent_id: 'main',
        status: 'open', hint: { title: 'Turn 1' }, payload: { turn_no: 1 }, channels: {},
        metrics: null },
      { card_id: 'm', card_kind: 'message', parent_card_id: 't', agent_id: 'main',
        status: 'open', hint: {}, payload: {}, channels: { text: 'Hel' }, metrics: null },
    ],
    prompts: [],
  };

  it('becomes the same forest as the frames it folds', () => {
    const state = loadSnapshot(initialState(), snapshot);

    assert.deepEqual(childrenOf(state), ['t']);
    assert.deepEqual(childrenOf(state, 't'), ['m']);
    assert.equal(channelText(state.cards.get('m'), 'text'), 'Hel');
    assert.equal(state.lastSeq, 40);
    assert.equal(state.traceId, TRACE);
  });

  it('goes on with the frames after it', () => {
    const state = reduceBatch(loadSnapshot(initialState(), snapshot), [
      on(41, 'append', 'm', { channel: 'text', chunk: 'lo' }),
      on(42, 'close', 'm', { status: 'ok' }),
    ]).state;

    assert.equal(channelText(state.cards.get('m'), 'text'), 'Hello');
    assert.equal(state.cards.get('m').status, 'ok');
    assert.equal(state.lastSeq, 42);
  });

  it('keeps what it does not tell', () => {
    const titled = { ...initialState(), title: 'Locks' };

    assert.equal(loadSnapshot(titled, snapshot).title, 'Locks');
  });
});
