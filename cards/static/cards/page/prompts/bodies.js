/** Which template shows which kind of prompt. */

import { html } from '../../vendor/lit-html/lit-html.js';
import { asText } from '../format.js';
import { permissionAsked, permissionBody } from './permission_body.js';
import { planAsked, planBody } from './plan_body.js';
import { questionAsked, questionBody } from './question_body.js';
import { stepDecisionAsked, stepDecisionBody } from './step_decision_body.js';

const BODIES = new Map([
  ['permission', { ask: permissionBody, asked: permissionAsked }],
  ['question', { ask: questionBody, asked: questionAsked }],
  ['plan_review', { ask: planBody, asked: planAsked }],
  ['step_decision', { ask: stepDecisionBody, asked: stepDecisionAsked }],
]);

/** Everything that an unknown kind carries, in plain form. */
const PLAIN = {
  ask: ({ inner }) => PLAIN.asked(inner),
  asked: (inner) => html`<pre class="raw" tabindex="0">${asText(inner)}</pre>`,
};

/**
 * @param {string} kind
 * @returns {{ask: Function, asked: Function}} `ask` takes the view of an open prompt,
 *   `asked` the inner of a settled one.
 */
export function bodyOf(kind) {
  return BODIES.get(kind) ?? PLAIN;
}
