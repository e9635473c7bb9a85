/** How prompts are answered on the page. Spec: EMIT 2.4.4, 7; Rulings E16, E18, E19. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { beginningOf, exactParts } from '../../../../cards/static/cards/page/prompts/exact_text.js';
import { kindOf } from '../../../../cards/static/cards/page/prompts/kinds.js';
import { outcomeWords } from '../../../../cards/static/cards/page/prompts/outcome.js';
import { sessionCoverage } from '../../../../cards/static/cards/page/prompts/permission.js';
import {
  lateNeeds, updatedSteps, withFields, withMoved, withNewStep, withoutNeed, withoutStep,
} from '../../../../cards/static/cards/page/prompts/plan_steps.js';
import { withChoice, withOwn, withWords } from '../../../../cards/static/cards/page/prompts/question.js';
import { ageHint, timeLeft } from '../../../../cards/static/cards/page/prompts/times.js';

function choicesOf(kind, inner, fields = {}) {
  const { blank, choices } = kindOf(kind);
  return choices(inner, { ...blank(inner), ...fields });
}

const answersOf = (...args) => choicesOf(...args).map(({ label, decision, payload }) => [label, decision, payload]);

describe('a permission', () => {
  const options = [
    { label: 'Once', scope: 'once', allow: true },
    { label: 'Always', scope: 'session', allow: true },
    { label: 'No', scope: 'once', allow: false },
  ];

  it('is answered by its options in their order', () => {
    assert.deepEqual(answersOf('permission', { tool_name: 'Bash', options }, { message: ' ok ' }), [
      ['Once', 'approved', { scope: 'once', message: 'ok' }],
      ['Always', 'approved', { scope: 'session', message: 'ok' }],
      ['No', 'denied', { scope: 'once', message: 'ok' }],
    ]);
    const notes = choicesOf('permission', { options }).map((choice) => choice.note);
    assert.deepEqual(notes, ['this call only', 'until the session ends', '']);
  });

  it('without options is allowed or denied', () => {
    assert.deepEqual(answersOf('permission', { tool_name: 'Bash' }), [
      ['Allow', 'approved', { scope: 'once' }],
      ['Deny', 'denied', { scope: 'once' }],
    ]);
  });

  it('can always be denied', () => {
    const labels = answersOf('permission', { options: options.slice(0, 2) }).map(([label]) => label);

    assert.deepEqual(labels, ['Once', 'Always', 'Deny']);
  });

  it('tells what the session would cover, where that says anything', () => {
    const digest = `Bash:sha256:${'0'.repeat(64)}`;

    assert.equal(sessionCoverage({ options, permission_key: 'Bash:git status' }), 'Bash:git status');
    assert.equal(sessionCoverage({ options, permission_key: digest }), '');
    assert.equal(sessionCoverage({ options: options.slice(0, 1), permission_key: 'Bash:ls' }), '');
    assert.equal(sessionCoverage({ options }), '');
  });
});

describe('a text to be judged', () => {
  it('shows what would not be seen', () => {
    assert.deepEqual(exactParts('rm\u202e a\u200b\n\tb\u00a0\x1b'), [
      { text: 'rm', isSign: false },
      { text: 'U+202E', isSign: true },
      { text: ' a', isSign: false },
      { text: 'U+200B', isSign: true },
      { text: '\n\tb', isSign: false },
      { text: 'U+00A0', isSign: true },
      { text: 'U+001B', isSign: true },
    ]);
    assert.deepEqual(exactParts(''), []);
  });

  it('is shown whole when it is short', () => {
    assert.equal(beginningOf('a\nb'), 'a\nb');
    assert.equal(beginningOf('x'.repeat(5000)).length, 900);
    assert.equal(beginningOf('x\n'.repeat(50)).split('\n').length, 12);
  });
});

describe('a question', () => {
  const options = [{ label: 'red' }, { label: 'blue' }, { label: 'green' }];
  const blank = kindOf('question').blank();
  const answer = (inner, draft) => choicesOf('question', inner, draft)[0];

  it('with one choice takes the last one', () => {
    const inner = { question: '?', options };
    const draft = withChoice(inner, withChoice(inner, blank, 'red', true), 'blue', true);

    assert.equal(answer(inner, blank).isReady, false);
    assert.equal(answer(inner, draft).isReady, true);
    assert.deepEqual(answer(inner, draft).payload, { selected_options: ['blue'], custom_text: '' });
  });

  it('with several choices takes them in the order of the options', () => {
    const inner = { question: '?', options, multi: true };
    let draft = withChoice(inner, blank, 'green', true);
    draft = withChoice(inner, draft, 'blue', true);
    draft = withChoice(inner, draft, 'red', true);
    draft = withChoice(inner, draft, 'blue', false);

    assert.deepEqual(answer(inner, draft).payload, { selected_options: ['red', 'green'], custom_text: '' });
  });

  it('takes own words beside several choices, and instead of one', () => {
    const one = { question: '?', options, allow_custom: true };
    const many = { ...one, multi: true };
    const chosen = (inner) => withWords(inner, withChoice(inner, blank, 'red', true), ' or not ');

    assert.deepEqual(answer(many, chosen(many)).payload, { selected_options: ['red'], custom_text: 'or not' });
    assert.deepEqual(answer(one, chosen(one)).payload, { selected_options: [], custom_text: 'or not' });
    const back = withChoice(one, chosen(one), 'red', true);
    assert.deepEqual(answer(one, back).payload, { selected_options: ['red'], custom_text: '' });
    assert.equal(answer(one, withOwn(one, blank)).isReady, false, 'nothing is written yet');
  });

  it('without options takes words only', () => {
    const inner = { question: '?', allow_custom: true };

    assert.equal(answer(inner, withWords(inner, blank, '  ')).isReady, false);
    assert.deepEqual(answer(inner, withWords(inner, blank, 'so')).payload, {
      selected_options: [], custom_text: 'so',
    });
  });

  it('takes no words that are not wanted', () => {
    const inner = { question: '?', options };

    assert.equal(answer(inner, { words: 'kept from elsewhere', isOwn: true }).payload.custom_text, '');
  });

  it('may be left unanswered', () => {
    const [, decline] = answersOf('question', { question: '?', options });

    assert.deepEqual(decline, ['Decline to answer', 'denied', {}]);
  });
});

describe('a plan', () => {
  const steps = [
    { id: 's1', description: 'look', subagent_type: 'researcher' },
    { id: 's2', description: 'think', depends_on: ['s1'], prompt: 'Deeply.' },
    { id: 's3', description: 'write', depends_on: ['s2'] },
  ];
  const inner = { plan_id: 'p', goal: 'g', steps };

  it('that is not edited is approved as it is', () => {
    assert.deepEqual(answersOf('plan_review', inner, { reason: 'no ' }), [
      ['Approve', 'approved', {}],
      ['Decline', 'denied', { reason: 'no' }],
    ]);
    const padded = withFields(steps, 's1', { description: ' look ', depends_on: [], prompt: '' });
    assert.equal(updatedSteps(padded, steps), undefined);
  });

  it('that is edited is approved with the whole list', () => {
    const edited = withFields(withMoved(steps, 's3', -1), 's2', { description: ' think twice ' });
    const [approve] = answersOf('plan_review', inner, { steps: edited });

    assert.deepEqual(approve, ['Approve with changes', 'approved', {
      updated_steps: [
        { id: 's1', description: 'look', subagent_type: 'researcher' },
        { id: 's3', description: 'write', depends_on: ['s2'] },
        { id: 's2', description: 'think twice', prompt: 'Deeply.', depends_on: ['s1'] },
      ],
    }]);
  });

  it('that was edited back is not edited', () => {
    assert.equal(updatedSteps(withMoved(withMoved(steps, 's1', 1), 's1', -1), steps), undefined);
  });

  it('cannot be approved with a step that says nothing, or without steps', () => {
    const isReady = (edited) => choicesOf('plan_review', inner, { steps: edited })[0].isReady;

    assert.equal(isReady(withFields(steps, 's1', { description: ' ' })), false);
    assert.equal(isReady([]), false);
    assert.equal(isReady(withNewStep(steps, steps)), false);
  });

  it('lets a step that is taken out pass on what it waited for', () => {
    assert.deepEqual(withoutStep(steps, 's2').map(({ id, depends_on: needs }) => [id, needs]), [
      ['s1', undefined], ['s3', ['s1']],
    ]);
    assert.deepEqual(withoutStep(steps, 's1')[0].depends_on, []);
  });

  it('gives a new step a new id and lets it wait for the one before', () => {
    const added = withNewStep(withoutStep(steps, 's3'), steps).at(-1);

    assert.deepEqual(added, { id: 's4', description: '', depends_on: ['s2'] });
    assert.deepEqual(withNewStep([], []), [{ id: 's1', description: '', depends_on: [] }]);
  });

  it('shows what comes too late, and can be rid of it', () => {
    const moved = withMoved(steps, 's2', -1);

    assert.deepEqual(lateNeeds(moved, 0), ['s1']);
    assert.deepEqual(lateNeeds(withoutNeed(moved, 's2', 's1'), 0), []);
    assert.deepEqual(lateNeeds(steps, 1), []);
  });
});

describe('a step decision', () => {
  const inner = { scope: 'step', step_id: 's2', reason: 'no' };

  it('offers to try again only when that may be', () => {
    const decisions = (fields) => answersOf('step_decision', { ...inner, ...fields }).map(([, decision]) => decision);

    assert.deepEqual(decisions({ allow_retry: true }), ['continue', 'retry', 'cancel']);
    assert.deepEqual(decisions({ allow_retry: false }), ['continue', 'cancel']);
    assert.deepEqual(decisions({}), ['continue', 'cancel']);
  });

  it('carries a remark when there is one', () => {
    const payloads = (note) => answersOf('step_decision', inner, { note }).map(([, , payload]) => payload);

    assert.deepEqual(payloads(' why '), [{ note: 'why' }, { note: 'why' }]);
    assert.deepEqual(payloads(' '), [{}, {}]);
  });

  it('says what failed', () => {
    const { title, subject } = kindOf('step_decision');

    assert.equal(title(inner), 'Step s2 failed');
    assert.equal(title({ scope: 'plan' }), 'The plan failed');
    assert.equal(subject({ ...inner, step_description: 'Look' }), 'Look');
  });
});

describe('a kind of a later protocol', () => {
  it('is shown without an answer', () => {
    assert.deepEqual(kindOf('riddle').choices({}, kindOf('riddle').blank({})), []);
  });
});

describe('an outcome', () => {
  const ended = (kind, decision, reason = '') => ({ kind, outcome: { decision, reason } });
  const own = (payload, state = 'accepted') => ({ state, decision: 'approved', payload });

  it('is told as far as it is known', () => {
    const told = [
      [ended('permission', 'approved'), 'Allowed'],
      [ended('permission', 'denied'), 'Denied'],
      [ended('question', 'approved'), 'Answered'],
      [ended('question', 'denied'), 'Declined to answer'],
      [ended('question', 'timeout'), 'Nobody answered in time'],
      [ended('question', 'cancelled'), 'Withdrawn'],
      [ended('question', 'unknown'), 'Already answered, or expired'],
      [ended('plan_review', 'denied', 'Step 1 (s1) depends on itself.'), 'Not approved: Step 1 (s1) depends on itself.'],
      [ended('step_decision', 'continue'), 'Continued'],
      [ended('step_decision', 'retry'), 'Tried again'],
      [ended('step_decision', 'cancelled'), 'Stopped'],
      [ended('riddle', 'solved'), 'Settled'],
    ];

    assert.deepEqual(told.map(([prompt]) => outcomeWords(prompt)), told.map(([, words]) => words));
  });

  it('tells the own answer once it counts', () => {
    const red = { selected_options: ['red'], custom_text: 'or so' };

    assert.equal(outcomeWords(ended('permission', 'approved'), own({ scope: 'session' })), 'Allowed for this session');
    assert.equal(outcomeWords(ended('permission', 'approved'), own({ scope: 'once' })), 'Allowed once');
    assert.equal(outcomeWords(ended('question', 'approved'), own(red)), 'Answered: red; or so');
    assert.equal(outcomeWords(ended('question', 'approved'), own(red, 'sent')), 'Answered');
    assert.equal(outcomeWords(ended('plan_review', 'approved'), own({ updated_steps: [] })), 'Approved with changes');
    assert.equal(outcomeWords(ended('plan_review', 'approved'), own({})), 'Approved');
  });
});

describe('time', () => {
  const askedAt = '2026-01-01T00:00:00.000Z';
  const after = (seconds) => Date.parse(askedAt) + seconds * 1000;
  const DAY = 86_400;

  it('makes a prompt doubtful after seven days', () => {
    assert.equal(ageHint({ askedAt }, after(7 * DAY - 1)), '');
    assert.equal(
      ageHint({ askedAt }, after(8.5 * DAY)),
      'This question is 8 days old; it may have expired.',
    );
    assert.equal(ageHint({ askedAt: 'nonsense' }, after(0)), '');
  });

  it('that is left is told roughly', () => {
    const left = (seconds) => timeLeft({ askedAt, timeoutMs: 2 * DAY * 1000 }, after(2 * DAY - seconds));

    assert.deepEqual([2 * DAY, 7200, 90, 60, 59, 0].map(left), [
      'about 2 days left', 'about 2 hours left', 'about 2 minutes left', 'about 1 minute left',
      'less than a minute left', 'time is up',
    ]);
    assert.equal(timeLeft({ askedAt, timeoutMs: 0 }, after(0)), '');
  });
});
