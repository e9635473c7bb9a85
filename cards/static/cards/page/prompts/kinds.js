/**
 * What each kind of prompt asks and how it can be answered, without a document.
 *
 * @typedef {Object} Choice A button.
 * @property {string} label
 * @property {string} [note] What it means, in a few words.
 * @property {'main'|'plain'|'quiet'} look
 * @property {boolean} isReady Whether the draft allows it.
 * @property {boolean} [isDefault] Enter in a field means it.
 * @property {string} decision
 * @property {Object<string, any>} payload
 *
 * @typedef {Object} PromptKind
 * @property {string} icon
 * @property {(inner: Object) => string} title
 * @property {(inner: Object) => string} subject What it is about, in one line.
 * @property {(inner: Object) => Object} blank The draft of an answer before anything
 *   was entered: plain data, which a tab can store.
 * @property {(inner: Object, draft: Object) => Choice[]} choices
 */

import { permission } from './permission.js';
import { planReview } from './plan_review.js';
import { question } from './question.js';
import { stepDecision } from './step_decision.js';

const KINDS = new Map([
  ['permission', permission],
  ['question', question],
  ['plan_review', planReview],
  ['step_decision', stepDecision],
]);

/** A kind of a later protocol is shown, and answered elsewhere. @type {PromptKind} */
const UNKNOWN_KIND = {
  icon: 'question',
  title: () => 'A question that this page cannot take an answer to',
  subject: () => 'Question',
  blank: () => ({}),
  choices: () => [],
};

/** @param {string} name @returns {PromptKind} */
export function kindOf(name) {
  return KINDS.get(name) ?? UNKNOWN_KIND;
}
