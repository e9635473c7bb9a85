/** What there is to stop and what waits. Spec: Rulings E7, E9, E10. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { initialState, reduceBatch } from '../../../../cards/static/cards/client/index.js';
import { workOf } from '../../../../cards/static/cards/page/work.js';
import { add, logged, on, opened, SESSION } from '../client/frames.mjs';

function stateAfter(...frames) {
  return reduceBatch(initialState(SESSION), [opened(0), ...frames]).state;
}

const queue = [{ event_id: 'c2', text: 'next' }];
const queued = (seq) => logged(seq, 'session.event', { payload: { kind: 'updated', inner: { queue } } });
const running = add(1, 'turn_c1', 'turn');
const entry = (eventId, state = 'sent') => ({ eventId, text: eventId, state });

describe('work', () => {
  it('is none in an idle session', () => {
    const work = workOf(stateAfter(running, on(2, 'close', 'turn_c1', { status: 'ok' })), [], null);

    assert.equal(work.isBusy, false);
    assert.equal(work.isStopping, false);
  });

  it('is the running turn; own messages wait behind it', () => {
    const work = workOf(stateAfter(running, queued(2)), [entry('c3'), entry('c4', 'refused')], null);

    assert.equal(work.isBusy, true);
    assert.equal(work.turnCardId, 'turn_c1');
    assert.deepEqual(work.queue, queue);
    assert.deepEqual(work.following.map((e) => e.eventId), ['c3']);
    assert.deepEqual(work.leading.map((e) => e.eventId), ['c4']);
  });

  it('begins with the message that is sent', () => {
    const work = workOf(stateAfter(), [entry('c0', 'refused'), entry('c1'), entry('c2')], null);

    assert.equal(work.isBusy, true);
    assert.equal(work.turnCardId, 'turn_c1');
    assert.equal(work.leading.length, 3);
  });

  it('is not begun by a message that was refused', () => {
    assert.equal(workOf(stateAfter(), [entry('c1', 'refused')], null).isBusy, false);
  });

  it('goes on between two turns, of which the next is not known yet', () => {
    const between = stateAfter(running, queued(2), on(3, 'close', 'turn_c1', { status: 'ok' }));
    const work = workOf(between, [entry('c3')], null);

    assert.equal(work.isBusy, true);
    assert.equal(work.turnCardId, '');
    assert.equal(work.following.length, 1);
  });

  it('is stopping while the stop of this turn is not answered', () => {
    const isStopping = (stopping) => workOf(stateAfter(running), [], stopping).isStopping;

    assert.equal(isStopping({ turnCardId: 'turn_c1', clearQueue: false }), true);
    assert.equal(isStopping({ turnCardId: '', clearQueue: true }), true);
    assert.equal(isStopping({ turnCardId: 'turn_c0', clearQueue: false }), false);
    assert.equal(isStopping(null), false);
    assert.equal(workOf(stateAfter(running), [], { turnCardId: '', clearQueue: true }).isClearing, true);
  });
});
