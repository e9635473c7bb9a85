/** Which prompts are open. Spec: EMIT 2.4.2, 2.4.4, 7; Rulings E3, E15. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import {
  initialState, loadSnapshot, openPrompts, reduceBatch,
} from '../../../../cards/static/cards/client/index.js';
import { add, answerError, ephemeral, on, opened, prompt, reply, SESSION, TRACE } from './frames.mjs';

function after(state, ...frames) {
  return reduceBatch(state, frames).state;
}

const begun = () => after(initialState(SESSION), opened(0), add(1, 't1', 'turn'));
const idsOf = (state) => openPrompts(state).map((each) => each.requestId);
const outcomeOf = (state, id) => state.prompts.get(id).outcome;

describe('a prompt', () => {
  it('is open with everything it carries and the place where it was asked', () => {
    const inner = { tool_name: 'Bash', tool_input: 'ls' };
    const payload = { request_id: 'r1', kind: 'permission', inner, timeout_ms: 5000 };
    const frame = { ...prompt(3, 'r1', { agent_id: 'sub_1' }), payload };
    const state = after(begun(), add(2, 'm', 'message', { parent_card_id: 't1' }), frame);

    assert.deepEqual(openPrompts(state), [{
      requestId: 'r1',
      kind: 'permission',
      inner,
      timeoutMs: 5000,
      seq: 3,
      askedAt: '2026-01-01T00:00:03.000Z',
      agentId: 'sub_1',
      turnCardId: 't1',
      afterCardId: 'm',
      outcome: null,
    }]);
  });

  it('is one, however often it is sent', () => {
    const first = after(begun(), prompt(2, 'r1'));
    const again = after(first, opened(2), prompt(2, 'r1'), prompt(2, 'r1'));

    assert.deepEqual(idsOf(again), ['r1']);
    assert.equal(again.prompts.get('r1'), first.prompts.get('r1'), 'nothing is drawn anew');
    assert.equal(again.lastSeq, 2);
  });

  it('that is sent again does not move the state back', () => {
    const state = after(begun(), prompt(2, 'r1'), add(3, 'm', 'message'), prompt(2, 'r1'));

    assert.equal(state.lastSeq, 3);
  });

  it('stands beside others in the order they were asked', () => {
    const state = after(begun(), prompt(3, 'r2'), prompt(2, 'r1'), prompt(4, 'r3'));

    assert.deepEqual(idsOf(state), ['r1', 'r2', 'r3']);
    assert.deepEqual(idsOf(after(state, reply(5, 'r2', 'approved'))), ['r1', 'r3']);
  });

  it('outlives its turn', () => {
    const state = after(begun(), prompt(2, 'r1'), on(3, 'close', 't1', { status: 'failed' }));

    assert.deepEqual(idsOf(state), ['r1']);
  });

  it('is no card and touches none', () => {
    const { state, touched } = reduceBatch(begun(), [prompt(2, 'r1'), reply(3, 'r1', 'denied')]);

    assert.equal(state.cards.size, 1);
    assert.equal(touched.size, 0);
  });

  it('never changes a state that was handed out', () => {
    const before = after(begun(), prompt(2, 'r1'));
    const copy = structuredClone(before);

    after(before, reply(3, 'r1', 'denied'), prompt(4, 'r2'));

    assert.deepEqual(before, copy);
  });
});

describe('a reply', () => {
  it('settles its prompt and tells how', () => {
    const state = after(begun(), prompt(2, 'r1'), reply(3, 'r1', 'denied', 'not today'));

    assert.deepEqual(idsOf(state), []);
    assert.deepEqual(outcomeOf(state, 'r1'), { decision: 'denied', reason: 'not today' });
  });

  it('settles it for good', () => {
    const state = after(
      begun(), prompt(2, 'r1'), reply(3, 'r1', 'approved'), prompt(2, 'r1'), reply(4, 'r1', 'denied'),
    );

    assert.deepEqual(idsOf(state), []);
    assert.equal(outcomeOf(state, 'r1').decision, 'approved');
  });

  it('leaves nothing open of a replay', () => {
    const past = [prompt(2, 'r1'), reply(3, 'r1', 'approved'), prompt(4, 'r2'), reply(5, 'r2', 'timeout')];

    assert.deepEqual(idsOf(after(begun(), ...past)), []);
    assert.deepEqual(idsOf(past.reduce((state, frame) => after(state, frame), begun())), []);
  });

  it('to a prompt that was never seen is nothing', () => {
    assert.equal(after(begun(), reply(2, 'r1', 'approved')).prompts.size, 0);
  });
});

describe('an error that answers an answer', () => {
  it('closes a prompt that the server does not know, and is told nowhere else', () => {
    const state = after(begun(), prompt(2, 'r1'), answerError('r1', 'UNKNOWN_REQUEST_ID'));

    assert.deepEqual(idsOf(state), []);
    assert.equal(outcomeOf(state, 'r1').decision, 'unknown');
    assert.deepEqual(state.errors, []);
  });

  it('does not hide how the prompt was settled, before or after it', () => {
    const unknown = answerError('r1', 'UNKNOWN_REQUEST_ID');
    const asked = after(begun(), prompt(2, 'r1'));

    const first = after(asked, unknown, reply(3, 'r1', 'approved'));
    const last = after(asked, reply(3, 'r1', 'approved'), unknown);

    assert.equal(outcomeOf(first, 'r1').decision, 'approved');
    assert.equal(outcomeOf(last, 'r1').decision, 'approved');
  });

  it('is taken back when the prompt is asked again', () => {
    const state = after(
      begun(), prompt(2, 'r1'), answerError('r1', 'UNKNOWN_REQUEST_ID'), prompt(2, 'r1'),
    );

    assert.deepEqual(idsOf(state), ['r1']);
  });

  it('of another kind leaves the prompt open', () => {
    for (const code of ['INVALID_ANSWER', 'DATABASE_UNAVAILABLE', 'RATE_LIMITED']) {
      const state = after(begun(), prompt(2, 'r1'), answerError('r1', code));

      assert.deepEqual(idsOf(state), ['r1']);
      assert.deepEqual(state.errors, []);
    }
  });

  it('is told like any other when its prompt is not known', () => {
    const state = after(begun(), answerError('r9', 'UNKNOWN_REQUEST_ID'), ephemeral('error', {}));

    assert.equal(state.errors.length, 2);
  });
});

describe('a snapshot', () => {
  const turn = { card_id: 't1', card_kind: 'turn', status: 'open', payload: {} };
  const message = { card_id: 'm', parent_card_id: 't1', card_kind: 'message', status: 'ok' };
  const snapshot = (...prompts) => ({
    session_id: SESSION, trace_id: TRACE, last_seq: 9, state: 'running', cards: [turn, message], prompts,
  });

  it('opens what it lists, at the end of the newest turn', () => {
    const state = loadSnapshot(initialState(SESSION), snapshot(prompt(5, 'r1'), prompt(7, 'r2')));

    assert.deepEqual(idsOf(state), ['r1', 'r2']);
    assert.equal(state.prompts.get('r1').afterCardId, 'm');
    assert.equal(state.lastSeq, 9);
  });

  it('drops what it does not list, and keeps what is known of the rest', () => {
    const before = after(
      begun(), prompt(2, 'r1'), prompt(3, 'r2'), prompt(4, 'r3'), reply(5, 'r3', 'approved'),
    );
    const state = loadSnapshot(before, snapshot(prompt(3, 'r2')));

    assert.deepEqual([...state.prompts.keys()], ['r2', 'r3']);
    assert.equal(state.prompts.get('r2'), before.prompts.get('r2'));
    assert.equal(outcomeOf(state, 'r3').decision, 'approved');
  });
});
