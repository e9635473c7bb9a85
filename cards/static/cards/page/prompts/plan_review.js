/** Plan reviews: shall this plan be carried out? Spec: EMIT 7.1, 7.3; Ruling E19. */

import { updatedSteps } from './plan_steps.js';

/**
 * @typedef {Object} PlanDraft
 * @property {import('./plan_steps.js').Step[]} steps
 * @property {boolean} isEditing
 * @property {string} reason
 */

/** @type {import('./kinds.js').PromptKind} */
export const planReview = {
  icon: 'plan',
  title: () => 'Review the plan',
  subject: ({ goal }) => goal,
  blank: ({ steps = [] }) => ({ steps, isEditing: false, reason: '' }),
  choices({ steps: proposed = [] }, { steps, reason }) {
    const updated = updatedSteps(steps, proposed);
    return [
      {
        label: updated ? 'Approve with changes' : 'Approve',
        look: 'main',
        isReady: steps.length > 0 && steps.every((step) => step.description?.trim()),
        decision: 'approved',
        payload: updated ? { updated_steps: updated } : {},
      },
      {
        label: 'Decline',
        look: 'quiet',
        isReady: true,
        decision: 'denied',
        payload: { reason: reason.trim() },
      },
    ];
  },
};
