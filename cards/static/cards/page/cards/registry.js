/** Which template draws which kind of card. Spec: EMIT 5, 15.2. */

import {
  artifactCard, budgetCard, genericCard, memoryCard, systemCard, teamCard,
} from './notice_cards.js';
import { planCard, stepCard, todoCard } from './plan_cards.js';
import { messageCard, thinkingCard, turnCard } from './talk_cards.js';
import { agentCard, toolCard } from './work_cards.js';

const TEMPLATES = new Map([
  ['turn', turnCard],
  ['message', messageCard],
  ['tool', toolCard],
  ['agent', agentCard],
  ['plan', planCard],
  ['step', stepCard],
  ['artifact', artifactCard],
  ['thinking', thinkingCard],
  ['memory_op', memoryCard],
  ['budget', budgetCard],
  ['todo', todoCard],
  ['team', teamCard],
  ['system', systemCard],
]);

/** @param {string} kind @returns {Function} The generic one for unknown kinds. */
export function templateOf(kind) {
  return TEMPLATES.get(kind) ?? genericCard;
}
