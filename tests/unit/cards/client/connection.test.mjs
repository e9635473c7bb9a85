/** The connection's rules. Spec: EMIT 2, 16; Rulings E1-E10, E25, E27. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import {
  backoffDelay, BASE_DELAY_MS, MAX_DELAY_MS, PING_INTERVAL_MS, reconnectDelay,
} from '../../../../cards/static/cards/client/index.js';
import { Stage } from './fake_network.mjs';
import { add, ephemeral, logged, on, opened, resumed, TRACE } from './frames.mjs';

/** A stage whose page has seen frames 1 to `seq`. */
function caughtUp(seq = 2, options) {
  const stage = new Stage(options);
  stage.connection.start();
  stage.serve(opened(seq), resumed(1, seq));
  for (let n = 1; n <= seq; n += 1) stage.serve(add(n, `card${n}`, 'tool'));
  return stage;
}

/** Lose the socket and greet on the next one. */
function reconnect(stage, lastSeq) {
  stage.lose();
  stage.timers.pass(MAX_DELAY_MS);
  stage.serve(opened(lastSeq));
}

const turnOf = (seq, eventId) =>
  add(seq, `turn_${eventId}`, 'turn', { payload: { input: { event_id: eventId, text: '' } } });

describe('opening', () => {
  it('names the session in the address', () => {
    const stage = new Stage({ sessionId: 'sess_a b' });
    stage.connection.start();

    assert.equal(stage.socket.url, 'ws://host/v1/ws?session_id=sess_a%20b');
    assert.equal(stage.connection.status.name, 'connecting');
  });

  it('lets the server mint the id and keeps it', () => {
    const stage = new Stage({ sessionId: '' });
    stage.connection.start();
    assert.equal(stage.socket.url, 'ws://host/v1/ws');

    stage.serve(opened(0));

    assert.equal(stage.connection.sessionId, 'sess_1');
    reconnect(stage, 0);
    assert.equal(stage.socket.url, 'ws://host/v1/ws?session_id=sess_1');
  });

  it('shows no other session under the address of one that is not ours', () => {
    const stage = new Stage({ sessionId: 'sess_foreign' });
    stage.connection.start();

    stage.serve(opened(0));

    assert.deepEqual(stage.toldOf('onLost'), ['session_not_found']);
    assert.equal(stage.connection.status.name, 'closed');
    assert.deepEqual(stage.toldOf('onFrame'), []);
  });

  it('asks a fresh page for everything', () => {
    const stage = new Stage();
    stage.connection.start();
    stage.serve(opened(5));

    assert.equal(stage.connection.status.name, 'open');
    assert.deepEqual(stage.sent, [
      { type: 'session.resume', trace_id: TRACE, last_seq: 0 },
    ]);
  });

  it('asks nothing of a session that has no events', () => {
    const stage = new Stage();
    stage.connection.start();
    stage.serve(opened(0));

    assert.deepEqual(stage.sent, []);
    assert.equal(stage.toldOf('onCaughtUp').length, 1);
  });

  it('hands on the frames of other traces without counting them', () => {
    const stage = caughtUp(2);
    const error = ephemeral('error', { error: { type: 'invalid_input', message: 'no' } });

    stage.serve(error, error);

    assert.equal(stage.toldOf('onFrame').filter((f) => f.payload.kind === 'error').length, 2);
  });
});

describe('order', () => {
  it('tells when the replay is over', () => {
    const stage = new Stage();
    stage.connection.start();
    stage.serve(opened(2), resumed(1, 2), add(1, 'a', 'turn'));
    assert.equal(stage.toldOf('onCaughtUp').length, 0);

    stage.serve(add(2, 'b', 'tool'));

    assert.equal(stage.toldOf('onCaughtUp').length, 1);
  });

  it('drops copies', () => {
    const stage = caughtUp(2);

    stage.serve(add(1, 'card1', 'tool'), add(2, 'card2', 'tool'), add(3, 'card3', 'tool'));

    assert.deepEqual(stage.appliedSeqs, [1, 2, 3]);
  });

  it('asks again from the last frame when one is missing', () => {
    const stage = caughtUp(2);

    stage.serve(add(4, 'card4', 'tool'));

    assert.deepEqual(stage.appliedSeqs, [1, 2]);
    assert.deepEqual(stage.sent.at(-1), {
      type: 'session.resume', trace_id: TRACE, last_seq: 2,
    });
    stage.serve(resumed(3, 4), add(3, 'card3', 'tool'), add(4, 'card4', 'tool'));
    assert.deepEqual(stage.appliedSeqs, [1, 2, 3, 4]);
  });

  it('asks once for one gap', () => {
    const stage = caughtUp(2);

    stage.serve(add(4, 'a', 'tool'), add(5, 'b', 'tool'), add(6, 'c', 'tool'));

    assert.equal(stage.sent.filter((frame) => frame.last_seq === 2).length, 1);
  });

  it('lets live frames overtake the answer to a resume', () => {
    const stage = new Stage();
    stage.connection.start();
    stage.serve(opened(2), add(3, 'c', 'tool'));

    stage.serve(resumed(1, 3), add(1, 'a', 'turn'), add(2, 'b', 'tool'), add(3, 'c', 'tool'));

    assert.deepEqual(stage.appliedSeqs, [1, 2, 3]);
  });

  it('survives what is no JSON', () => {
    const stage = caughtUp(1);

    stage.socket.onmessage({ data: '{"type":' });
    stage.serve(add(2, 'b', 'tool'));

    assert.deepEqual(stage.appliedSeqs, [1, 2]);
  });
});

describe('reconnecting', () => {
  it('resumes by itself from the last frame', () => {
    const stage = caughtUp(2);

    reconnect(stage, 4);

    assert.deepEqual(stage.sent, [
      { type: 'session.resume', trace_id: TRACE, last_seq: 2 },
    ]);
    stage.serve(resumed(3, 4), add(3, 'c', 'tool'), add(4, 'd', 'tool'));
    assert.deepEqual(stage.appliedSeqs, [1, 2, 3, 4]);
    assert.equal(stage.toldOf('onReset').length, 1, 'only at the first opened');
  });

  it('starts over when the trace is another one', () => {
    const stage = caughtUp(2);
    stage.lose();
    stage.timers.pass(MAX_DELAY_MS);

    stage.serve(opened(9, 'tr_other'));

    assert.equal(stage.toldOf('onReset').length, 2);
    assert.deepEqual(stage.sent.at(-1), {
      type: 'session.resume', trace_id: 'tr_other', last_seq: 0,
    });
  });

  it('doubles the delay up to the limit, half of it random', () => {
    const longest = (attempt) => backoffDelay(attempt, () => 1);

    assert.deepEqual([0, 1, 2, 3].map(longest), [500, 1000, 2000, 4000]);
    assert.equal(longest(50), MAX_DELAY_MS);
    assert.equal(backoffDelay(0, () => 0), BASE_DELAY_MS / 2);
  });

  it('waits longer after each failure', () => {
    const stage = new Stage();
    stage.connection.start();

    const delays = [];
    for (let n = 0; n < 4; n += 1) {
      stage.lose();
      delays.push(stage.connection.status.retryInMs);
      stage.timers.pass(delays.at(-1) - 1);
      assert.equal(stage.sockets.length, n + 1, 'not before the delay is over');
      stage.timers.pass(1);
    }

    assert.deepEqual(delays, [500, 1000, 2000, 4000]);
  });

  it('forgets the failures only when a connection lasts', () => {
    const stage = new Stage();
    stage.connection.start();
    stage.lose();
    stage.timers.pass(500);
    stage.serve(opened(0));
    stage.lose();
    assert.equal(stage.connection.status.retryInMs, 1000);

    stage.timers.pass(1000);
    stage.serve(opened(0));
    stage.timers.pass(5000);
    stage.lose();

    assert.equal(stage.connection.status.retryInMs, 500);
  });

  it('tries at once when asked to', () => {
    const stage = new Stage();
    stage.connection.start();
    stage.lose();

    stage.connection.retryNow();
    assert.equal(stage.sockets.length, 2);
    stage.connection.retryNow();
    stage.timers.pass(MAX_DELAY_MS);

    assert.equal(stage.sockets.length, 2, 'not while it is connecting');
  });

  it('stays closed after close', () => {
    const stage = caughtUp(1);

    stage.connection.close();
    stage.timers.pass(10 * MAX_DELAY_MS);

    assert.equal(stage.sockets.length, 1);
    assert.equal(stage.connection.status.name, 'closed');
  });

  it('returns nearly at once when the server only went away', () => {
    assert.equal(reconnectDelay(1001, 0, () => 0), 0);
    assert.equal(reconnectDelay(1001, 0, () => 1), BASE_DELAY_MS);
    assert.equal(reconnectDelay(1001, 2, () => 1), backoffDelay(2, () => 1), 'not again and again');
  });

  it('gives a busy server time', () => {
    const stage = caughtUp(1);

    stage.lose(1013);

    assert.equal(stage.connection.status.retryInMs, 8000);
    assert.equal(reconnectDelay(1013, 6, () => 1), MAX_DELAY_MS, 'never less than its own');
  });

  it('ignores a socket that it left', () => {
    const stage = caughtUp(1);
    const old = stage.socket;
    stage.connection.close();

    assert.equal(old.onmessage, null);
    assert.equal(old.isClosed, true);
  });
});

describe('a refusal', () => {
  it('ends the tries of who is signed out', async () => {
    const stage = new Stage();
    stage.isSignedOut = true;
    stage.connection.start();

    stage.lose(1006);
    await stage.settle();
    stage.timers.pass(10 * MAX_DELAY_MS);

    assert.equal(stage.connection.status.name, 'signed_out');
    assert.equal(stage.sockets.length, 1);
  });

  it('ends them also when it comes later', async () => {
    const stage = caughtUp(1);
    stage.isSignedOut = true;

    stage.lose(1008, 'token revoked');
    await stage.settle();

    assert.equal(stage.connection.status.name, 'signed_out');
  });

  it('is taken for a server that is away while nobody says otherwise', async () => {
    const stage = new Stage();
    stage.connection.start();

    stage.lose(1006);
    await stage.settle();

    assert.equal(stage.connection.status.name, 'waiting');
    stage.timers.pass(MAX_DELAY_MS);
    assert.equal(stage.sockets.length, 2);
  });

  it('is not looked for when a good connection breaks', async () => {
    const stage = caughtUp(1);
    stage.isSignedOut = true;

    stage.lose(1006);
    await stage.settle();

    assert.equal(stage.connection.status.name, 'waiting');
  });

  it('that is answered too late ends nothing', async () => {
    const stage = new Stage();
    stage.isSignedOut = true;
    stage.connection.start();

    stage.lose(1006);
    stage.connection.retryNow();
    stage.serve(opened(0));
    await stage.settle();

    assert.equal(stage.connection.status.name, 'open');
  });

  it('is over when somebody has signed in', async () => {
    const stage = new Stage();
    stage.isSignedOut = true;
    stage.connection.start();
    stage.lose(1006);
    await stage.settle();

    stage.connection.retryNow();
    await stage.settle();
    assert.equal(stage.connection.status.name, 'signed_out', 'not while it lasts');
    stage.isSignedOut = false;
    stage.connection.retryNow();
    await stage.settle();

    assert.equal(stage.connection.status.name, 'connecting');
  });
});

describe('keep-alive', () => {
  it('pings every 25 s', () => {
    const stage = caughtUp(1);

    for (let n = 0; n < 3; n += 1) {
      stage.timers.pass(PING_INTERVAL_MS);
      stage.serve({ type: 'pong' });
    }

    assert.equal(stage.socket.sent.filter((frame) => frame.type === 'ping').length, 3);
    assert.equal(stage.connection.status.name, 'open');
  });

  it('gives up a link that answers nothing', () => {
    const stage = caughtUp(1);

    stage.timers.pass(PING_INTERVAL_MS + 10_000);

    assert.equal(stage.connection.status.name, 'waiting');
    assert.equal(stage.socket.isClosed, true);
  });

  it('takes any frame as an answer', () => {
    const stage = caughtUp(1);

    stage.timers.pass(PING_INTERVAL_MS);
    stage.serve(add(2, 'b', 'tool'));
    stage.timers.pass(10_000);

    assert.equal(stage.connection.status.name, 'open');
  });

  it('gives up a resume that is not answered', () => {
    const stage = new Stage();
    stage.connection.start();
    stage.serve(opened(3));

    stage.timers.pass(20_000);

    assert.equal(stage.connection.status.name, 'waiting');
  });
});

describe('resume_failed', () => {
  const snapshot = { session_id: 'sess_1', trace_id: TRACE, last_seq: 9, cards: [], prompts: [] };
  const failed = () => ephemeral('resume_failed', { trace_id: TRACE, reason: 'events_expired' });

  it('takes the snapshot and resumes from it', async () => {
    const stage = caughtUp(2);
    stage.snapshots.push(snapshot);
    reconnect(stage, 9);

    stage.serve(failed());
    await stage.settle();

    assert.deepEqual(stage.toldOf('loadSnapshot'), ['sess_1']);
    assert.deepEqual(stage.toldOf('onSnapshot'), [snapshot]);
    assert.equal(stage.sent.at(-1).last_seq, 9);
    stage.serve(resumed(10, 10), add(10, 'x', 'tool'));
    assert.equal(stage.appliedSeqs.at(-1), 10);
  });

  it('takes the snapshot when the beginning was pruned', async () => {
    const stage = new Stage();
    stage.snapshots.push(snapshot);
    stage.connection.start();
    stage.serve(opened(9), resumed(10, 9));
    await stage.settle();

    assert.deepEqual(stage.toldOf('onSnapshot'), [snapshot]);
    assert.equal(stage.sent.at(-1).last_seq, 9);
    stage.serve(resumed(10, 9));
    stage.connection.sendMessage('Hi');
    assert.equal(stage.sent.at(-1).type, 'user.message');
  });

  it('says so when the session is gone', async () => {
    const stage = caughtUp(2);
    reconnect(stage, 9);

    stage.serve(ephemeral('resume_failed', { reason: 'session_not_found' }));
    await stage.settle();

    assert.deepEqual(stage.toldOf('onLost'), ['session_not_found']);
    assert.equal(stage.connection.status.name, 'closed');
  });

  it('backs off when the snapshot cannot be had', async () => {
    const stage = caughtUp(2);
    stage.snapshots.push(new Error('HTTP 503'));
    reconnect(stage, 9);

    stage.serve(failed());
    await stage.settle();

    assert.equal(stage.connection.status.name, 'waiting');
    assert.match(stage.connection.status.reason, /503/);
  });

  it('does not ask in a loop when the snapshot cannot be resumed either', async () => {
    const stage = caughtUp(2);
    stage.snapshots.push(snapshot, snapshot);
    reconnect(stage, 9);

    stage.serve(failed());
    await stage.settle();
    stage.serve(failed());
    await stage.settle();

    assert.equal(stage.connection.status.name, 'waiting');
  });

  it('takes the snapshot when gaps come back after every resume', async () => {
    const stage = caughtUp(2);
    stage.snapshots.push(snapshot);

    for (let n = 0; n < 4; n += 1) stage.serve(add(5, 'e', 'tool'), resumed(3, 5));
    await stage.settle();

    assert.equal(stage.toldOf('onSnapshot').length, 1);
  });
});

describe('a session that is to be kept', () => {
  /** Spec: Ruling E1. */
  it('is asked for once, and answered by a fresh greeting', async () => {
    const stage = new Stage();
    stage.connection.start();
    stage.serve(opened(0));

    const both = [stage.connection.keepSession(), stage.connection.keepSession()];
    stage.serve(opened(0));

    assert.deepEqual(await Promise.all(both), ['sess_1', 'sess_1']);
    assert.deepEqual(stage.sent, [{ type: 'session.create', session_id: 'sess_1' }]);
  });

  it('is asked for again on the next socket, before what is said', async () => {
    const stage = new Stage();
    stage.connection.start();
    const kept = stage.connection.keepSession();
    stage.serve(opened(0));
    stage.lose();
    stage.connection.sendMessage('hi');
    stage.timers.pass(1000);
    stage.serve(opened(0));

    assert.deepEqual(stage.sent.map((frame) => frame.type), ['session.create', 'user.message']);
    stage.serve(opened(0));
    assert.equal(await kept, 'sess_1');
  });

  it('goes on live when the greeting tells of another trace', () => {
    const stage = new Stage();
    stage.connection.start();
    stage.serve(opened(0));
    stage.connection.keepSession();

    stage.serve(opened(0, 'tr_other'));

    assert.deepEqual(stage.told.map(([kind]) => kind).filter((kind) => /Reset|CaughtUp/.test(kind)), [
      'onReset', 'onCaughtUp', 'onReset', 'onCaughtUp',
    ]);
  });

  it('may be refused, which stops nothing else', async () => {
    const stage = new Stage();
    stage.connection.start();
    stage.serve(opened(0));
    stage.connection.sendMessage('hi');
    const kept = stage.connection.keepSession();

    stage.serve(ephemeral('error', { error: { type: 'overloaded', code: 'TOO_MANY_SESSIONS', message: 'x' } }));

    await assert.rejects(kept, (error) => error.code === 'TOO_MANY_SESSIONS');
    assert.equal(stage.toldOf('onOutbox').at(-1)[0].state, 'sent');
  });

  it('is given up with the connection', async () => {
    const stage = new Stage();
    stage.connection.start();
    const kept = stage.connection.keepSession();

    stage.connection.close();

    await assert.rejects(kept, (error) => error.type === 'cancelled');
  });
});

describe('messages of the user', () => {
  it('go out with an event id and wait for their turn', () => {
    const stage = caughtUp(2);

    const eventId = stage.connection.sendMessage('Hi', { coordinator_mode: 'plan' });

    assert.equal(eventId, 'c1');
    assert.deepEqual(stage.sent.at(-1), {
      type: 'user.message',
      event_id: 'c1',
      content: [{ type: 'text', text: 'Hi' }],
      coordinator_mode: 'plan',
    });
    assert.equal(stage.toldOf('onOutbox').at(-1)[0].state, 'sent');
  });

  it('are acknowledged by the turn card that carries their id', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('Hi');

    stage.serve(turnOf(3, 'c1'));

    assert.deepEqual(stage.toldOf('onOutbox').at(-1), []);
  });

  it('are acknowledged by the queue that holds them', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('Hi');
    const inner = { queue: [{ event_id: 'c1', text: 'Hi' }] };

    stage.serve(logged(3, 'session.event', { payload: { kind: 'updated', inner } }));

    assert.deepEqual(stage.toldOf('onOutbox').at(-1), []);
  });

  it('are acknowledged by the turn that the server names', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('Hi');

    stage.serve(ephemeral('updated', { turn_card_id: 'turn_c1' }));

    assert.deepEqual(stage.toldOf('onOutbox').at(-1), []);
  });

  it('go out again under the same id after a reconnect, in order', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('one');
    stage.connection.sendMessage('two');

    reconnect(stage, 2);
    assert.deepEqual(stage.sent.map((frame) => frame.type), ['session.resume']);
    stage.serve(resumed(3, 2));

    const again = stage.sent.filter((frame) => frame.type === 'user.message');
    assert.deepEqual(again.map((frame) => frame.event_id), ['c1', 'c2']);
  });

  it('do not go out again when the replay shows that they arrived', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('one');

    reconnect(stage, 3);
    stage.serve(resumed(3, 3), turnOf(3, 'c1'));

    assert.deepEqual(stage.sent.map((frame) => frame.type), ['session.resume']);
  });

  it('do not go out again when the snapshot shows that they arrived', async () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('one');
    const turn = { card_id: 'turn_c1', card_kind: 'turn', payload: { input: { event_id: 'c1' } } };
    stage.snapshots.push({
      session_id: 'sess_1', trace_id: TRACE, last_seq: 9, cards: [turn], prompts: [],
    });

    reconnect(stage, 9);
    stage.serve(ephemeral('resume_failed', { reason: 'events_expired' }));
    await stage.settle();
    stage.serve(resumed(10, 9));

    assert.deepEqual(stage.sent.map((frame) => frame.type), ['session.resume', 'session.resume']);
  });

  it('wait while there is no connection', () => {
    const stage = caughtUp(2);
    stage.lose();

    stage.connection.sendMessage('later');
    assert.equal(stage.toldOf('onOutbox').at(-1)[0].state, 'waiting');
    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(2), resumed(3, 2));

    assert.equal(stage.sent.at(-1).content[0].text, 'later');
  });

  it('are not sent again by themselves after an error that names them', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('one');
    const error = { type: 'overloaded', message: 'full', details: { event_id: 'c1' } };

    stage.serve(ephemeral('error', { error }));
    reconnect(stage, 2);
    stage.serve(resumed(3, 2));

    const [entry] = stage.toldOf('onOutbox').at(-1);
    assert.equal(entry.state, 'refused');
    assert.deepEqual(entry.error, error);
    assert.deepEqual(stage.sent.map((frame) => frame.type), ['session.resume']);
  });

  it('are refused by an error without a name only when no other can be meant', () => {
    const error = { type: 'overloaded', message: 'full' };
    const one = caughtUp(2);
    one.connection.sendMessage('one');
    one.serve(ephemeral('error', { error }));
    const two = caughtUp(2);
    two.connection.sendMessage('one');
    two.connection.sendMessage('two');
    two.serve(ephemeral('error', { error }));

    const states = (stage) => stage.toldOf('onOutbox').at(-1).map((entry) => entry.state);
    assert.deepEqual(states(one), ['refused']);
    assert.deepEqual(states(two), ['sent', 'sent']);
  });

  it('go out again when the user says so, and not when the user gives them up', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('one');
    const error = { type: 'overloaded', message: 'full', details: { event_id: 'c1' } };
    stage.serve(ephemeral('error', { error }));

    stage.connection.retryMessage('c1');
    assert.equal(stage.sent.filter((frame) => frame.event_id === 'c1').length, 2);
    stage.connection.discardMessage('c1');

    assert.deepEqual(stage.toldOf('onOutbox').at(-1), []);
  });

  it('that break the connection by their size are not sent again', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('huge');

    stage.lose(1009);

    const [entry] = stage.toldOf('onOutbox').at(-1);
    assert.equal(entry.state, 'refused');
    assert.equal(entry.error.code, 'FRAME_TOO_LARGE');
  });

  it('keep what else happens to their cards out of the outbox', () => {
    const stage = caughtUp(2);
    stage.connection.sendMessage('one');

    stage.serve(add(3, 'turn_other', 'turn'), on(4, 'set', 'turn_other', { turn_no: 1 }));

    assert.equal(stage.toldOf('onOutbox').at(-1).length, 1);
  });
});

describe('a stop', () => {
  const wish = { turnCardId: 'turn_c1', clearQueue: false };
  const asked = (stage) => stage.sent.filter((frame) => frame.type === 'session.interrupt');

  function stopped(fields = {}) {
    const stage = caughtUp(2);
    stage.serve(turnOf(3, 'c1'));
    stage.connection.interrupt({ ...wish, ...fields });
    return stage;
  }

  it('names the trace and the turn', () => {
    const stage = stopped();

    assert.deepEqual(asked(stage), [
      { type: 'session.interrupt', trace_id: TRACE, turn_card_id: 'turn_c1' },
    ]);
    assert.deepEqual(stage.connection.stopping, wish);
  });

  it('clears the queue when it is meant to, and names no turn that is not known', () => {
    assert.deepEqual(asked(stopped({ turnCardId: '', clearQueue: true })), [
      { type: 'session.interrupt', trace_id: TRACE, clear_queue: true },
    ]);
  });

  it('is answered by the close of its turn, and by no other', () => {
    const stage = stopped();

    stage.serve(on(4, 'close', 'card1', { status: 'cancelled' }));
    assert.deepEqual(stage.connection.stopping, wish);
    stage.serve(on(5, 'close', 'turn_c1', { status: 'cancelled' }));

    assert.equal(stage.connection.stopping, null);
    assert.deepEqual(stage.toldOf('onStopping'), [wish, null]);
  });

  it('without a name is answered by the close of any turn', () => {
    const stage = stopped({ turnCardId: '' });

    stage.serve(on(4, 'close', 'turn_c9', { status: 'cancelled' }, { card_kind: 'turn' }));

    assert.equal(stage.connection.stopping, null);
  });

  it('is answered by the word that nothing runs', () => {
    const stage = stopped();

    stage.serve(ephemeral('updated', { state: 'idle' }));

    assert.equal(stage.connection.stopping, null);
  });

  it('is not answered by other news', () => {
    const stage = stopped();

    stage.serve(ephemeral('updated', { title: 'Locks' }));

    assert.deepEqual(stage.connection.stopping, wish);
  });

  it('is given up when the server refuses it', () => {
    const stage = stopped();

    stage.serve(ephemeral('error', { error: { type: 'overloaded', message: 'too many' } }));

    assert.equal(stage.connection.stopping, null);
  });

  it('is asked again after a reconnect, behind the message that it means', () => {
    const stage = caughtUp(2);
    stage.lose();
    stage.connection.sendMessage('Begin');
    stage.connection.interrupt(wish);

    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(2), resumed(3, 2));

    assert.deepEqual(stage.sent.map((frame) => frame.type), [
      'session.resume', 'user.message', 'session.interrupt',
    ]);
  });

  it('is not asked again when the replay shows that its turn has ended', () => {
    const stage = stopped();

    reconnect(stage, 4);
    stage.serve(resumed(4, 4), on(4, 'close', 'turn_c1', { status: 'cancelled' }));

    assert.deepEqual(asked(stage), []);
  });

  it('is not asked again when the snapshot shows that its turn has ended', async () => {
    const stage = stopped();
    const turn = { card_id: 'turn_c1', card_kind: 'turn', status: 'cancelled', payload: {} };
    stage.snapshots.push({
      session_id: 'sess_1', trace_id: TRACE, last_seq: 9, cards: [turn], prompts: [],
    });

    reconnect(stage, 9);
    stage.serve(ephemeral('resume_failed', { reason: 'events_expired' }));
    await stage.settle();
    stage.serve(resumed(10, 9));

    assert.deepEqual(asked(stage), []);
    assert.equal(stage.connection.stopping, null);
  });
});
