/** Answers to prompts, over a connection. Spec: EMIT 2.4.4, 7.3; Rulings E3, E15, E16. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { MAX_DELAY_MS } from '../../../../cards/static/cards/client/index.js';
import { Stage } from './fake_network.mjs';
import { add, answerError, ephemeral, opened, prompt, reply, resumed, TRACE } from './frames.mjs';

/** A stage whose page shows a prompt. */
function asked() {
  const stage = new Stage();
  stage.connection.start();
  stage.serve(opened(2), resumed(1, 2), add(1, 't1', 'turn'), prompt(2, 'r1'));
  return stage;
}

function reopen(stage, ...greeting) {
  stage.lose();
  stage.timers.pass(MAX_DELAY_MS);
  stage.serve(...greeting);
}

const yes = (stage, id = 'r1') => stage.connection.answer(id, 'approved', { custom_text: 'yes' });
const sent = (stage) => stage.sent.filter((frame) => frame.type === 'prompt.user_response');
const stateOf = (stage, id = 'r1') => stage.toldOf('onAnswers').at(-1)?.get(id)?.state;

describe('a prompt that is sent again', () => {
  it('reaches the page and does not move the cursor', () => {
    const stage = asked();
    stage.serve(add(3, 'm', 'message'));

    reopen(stage, opened(3), prompt(2, 'r1'));

    assert.deepEqual(stage.appliedSeqs, [1, 2, 3, 2]);
    assert.deepEqual(stage.sent, [{ type: 'session.resume', trace_id: TRACE, last_seq: 3 }]);
    stage.serve(resumed(4, 4), add(4, 'n', 'message'));
    assert.deepEqual(stage.appliedSeqs, [1, 2, 3, 2, 4]);
  });

  it('before the frames around it waits for the replay', () => {
    const stage = new Stage();
    stage.connection.start();

    stage.serve(opened(3), prompt(3, 'r1'));
    assert.deepEqual(stage.appliedSeqs, []);
    stage.serve(resumed(1, 3), add(1, 't', 'turn'), add(2, 'm', 'message'), prompt(3, 'r1'));

    assert.deepEqual(stage.appliedSeqs, [1, 2, 3]);
    assert.equal(stage.sent.length, 1, 'it is no gap');
  });
});

describe('an answer', () => {
  it('goes out once', () => {
    const stage = asked();

    yes(stage);
    stage.connection.answer('r1', 'denied', {});

    assert.deepEqual(sent(stage), [
      {
        type: 'prompt.user_response',
        request_id: 'r1',
        decision: 'approved',
        payload: { custom_text: 'yes' },
      },
    ]);
    assert.equal(stateOf(stage), 'sent');
  });

  it('is accepted by the reply that has its decision', () => {
    const stage = asked();
    stage.connection.answer('r1', 'cancel', {});

    stage.serve(reply(3, 'r1', 'cancelled'));

    assert.equal(stateOf(stage), 'accepted');
  });

  it('is forgotten when another one was accepted', () => {
    const stage = asked();
    yes(stage);

    stage.serve(reply(3, 'r1', 'denied'));

    assert.equal(stateOf(stage), undefined);
  });

  it('that came too late is told, also behind a reply that looks like its own', () => {
    const stage = asked();
    yes(stage);

    stage.serve(reply(3, 'r1', 'approved'), answerError('r1', 'UNKNOWN_REQUEST_ID'));

    assert.equal(stateOf(stage), undefined);
    assert.deepEqual(stage.toldOf('onAnswerTooLate'), ['r1']);
  });

  it('that does not fit may be given again', () => {
    const stage = asked();
    yes(stage);

    stage.serve(answerError('r1', 'INVALID_ANSWER', { field: 'payload.custom_text' }));
    const refused = stage.toldOf('onAnswers').at(-1).get('r1');
    yes(stage);

    assert.equal(refused.state, 'refused');
    assert.equal(refused.error.code, 'INVALID_ANSWER');
    assert.equal(sent(stage).length, 2);
    assert.equal(stateOf(stage), 'sent');
  });

  it('is not sent again by itself when it was refused', () => {
    const stage = asked();
    yes(stage);
    stage.serve(answerError('r1', 'RATE_LIMITED'));

    reopen(stage, opened(2), prompt(2, 'r1'), resumed(3, 2));

    assert.deepEqual(sent(stage), []);
    assert.equal(stateOf(stage), 'refused');
  });

  it('and its refusal are no matter of the messages that wait', () => {
    const stage = asked();
    stage.connection.sendMessage('Hi');
    yes(stage);

    stage.serve(answerError('r1', 'INVALID_ANSWER'));

    assert.equal(stage.toldOf('onOutbox').at(-1)[0].state, 'sent');
  });

  it('that breaks the connection by its size is not sent again', () => {
    const stage = asked();
    yes(stage);

    stage.lose(1009);
    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(2), prompt(2, 'r1'), resumed(3, 2));

    assert.equal(stateOf(stage), 'refused');
    assert.deepEqual(sent(stage), []);
  });
});

describe('an answer without a connection', () => {
  it('goes out once when the prompt is still asked', () => {
    const stage = asked();
    stage.lose();
    yes(stage);
    assert.equal(stateOf(stage), 'waiting');

    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(2), prompt(2, 'r1'));
    assert.deepEqual(sent(stage), [], 'not before the replay');
    stage.serve(resumed(3, 2), prompt(2, 'r1'));

    assert.equal(sent(stage).length, 1);
  });

  it('does not go out when the replay shows that it was answered', () => {
    const stage = asked();
    stage.lose();
    yes(stage);

    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(3), resumed(3, 3), reply(3, 'r1', 'approved'));

    assert.deepEqual(sent(stage), []);
    assert.equal(stateOf(stage), undefined, 'another one was accepted');
  });

  it('does not go out when the prompt is not asked any more', () => {
    const stage = asked();
    stage.lose();
    yes(stage);

    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(2), resumed(3, 2));

    assert.deepEqual(sent(stage), []);
    stage.serve(reply(3, 'r1', 'timeout'));
    assert.equal(stateOf(stage), undefined);
  });

  it('goes out to a server that does not send prompts again', () => {
    const stage = asked();
    stage.lose();
    yes(stage);

    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(2, TRACE, {}), resumed(3, 2));

    assert.equal(sent(stage).length, 1);
  });

  it('can be taken back until it goes out', () => {
    const stage = asked();
    stage.lose();
    yes(stage);

    stage.connection.takeBackAnswer('r1');
    assert.equal(stateOf(stage), undefined);
    stage.connection.answer('r1', 'denied', {});
    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(2), prompt(2, 'r1'), resumed(3, 2));
    stage.connection.takeBackAnswer('r1');

    assert.deepEqual(sent(stage).map((frame) => frame.decision), ['denied']);
    assert.equal(stateOf(stage), 'sent');
  });

  it('on its way when that broke goes out again if the prompt is still asked', () => {
    const stage = asked();
    yes(stage);

    reopen(stage, opened(2), prompt(2, 'r1'), resumed(3, 2));

    assert.equal(sent(stage).length, 1);
    assert.equal(stateOf(stage), 'sent');
  });

  it('is forgotten when a snapshot does not list its prompt', async () => {
    const stage = asked();
    stage.lose();
    yes(stage);
    stage.snapshots.push({
      session_id: 'sess_1', trace_id: TRACE, last_seq: 9, cards: [], prompts: [],
    });

    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(9), ephemeral('resume_failed', { reason: 'events_expired' }));
    await stage.settle();
    stage.serve(resumed(10, 9));

    assert.deepEqual(sent(stage), []);
    assert.equal(stateOf(stage), undefined);
  });

  it('goes out when a snapshot lists its prompt', async () => {
    const stage = asked();
    stage.lose();
    yes(stage);
    stage.snapshots.push({
      session_id: 'sess_1', trace_id: TRACE, last_seq: 9, cards: [], prompts: [prompt(2, 'r1')],
    });

    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(9), prompt(2, 'r1'), ephemeral('resume_failed', { reason: 'events_expired' }));
    await stage.settle();
    stage.serve(resumed(10, 9));

    assert.equal(sent(stage).length, 1);
  });

  it('is forgotten with the trace', () => {
    const stage = asked();
    stage.lose();
    yes(stage);

    stage.timers.pass(MAX_DELAY_MS);
    stage.serve(opened(0, 'tr_other'));

    assert.deepEqual(sent(stage), []);
  });
});
