/**
 * How a prompt ended, in a few words. Pure.
 *
 * Only this tab's own answer is known in full; of others the decision is.
 *
 * @typedef {import('../../client/types.js').Answer} Answer
 * @typedef {import('../../client/types.js').Prompt} Prompt
 */

const WORDS_OF_ANY = {
  timeout: 'Nobody answered in time',
  cancelled: 'Withdrawn',
  unknown: 'Already answered, or expired',
};

const WORDS_OF_KIND = {
  permission: { approved: 'Allowed', denied: 'Denied' },
  question: { approved: 'Answered', denied: 'Declined to answer' },
  plan_review: { approved: 'Approved', denied: 'Not approved' },
  step_decision: { continue: 'Continued', retry: 'Tried again', cancelled: 'Stopped' },
};

const ICONS = { approved: 'check', continue: 'check', retry: 'retry', denied: 'cross' };

/**
 * @param {Prompt} prompt A settled one.
 * @param {Answer} [answer] This tab's own to it.
 * @returns {string}
 */
export function outcomeWords({ kind, outcome: { decision, reason } }, answer) {
  const words =
    ownWords(kind, answer) ??
    WORDS_OF_KIND[kind]?.[decision] ??
    WORDS_OF_ANY[decision] ??
    'Settled';
  return reason ? `${words}: ${reason}` : words;
}

/** @param {Prompt} prompt A settled one. @returns {string} Name of an icon. */
export function outcomeIcon({ outcome: { decision } }) {
  return ICONS[decision] ?? 'dash';
}

const OWN_WORDS = {
  permission: ({ scope }) => (scope === 'session' ? 'Allowed for this session' : 'Allowed once'),
  question: ({ selected_options: labels, custom_text: words }) =>
    `Answered: ${[...labels, words].filter(Boolean).join('; ')}`,
  plan_review: ({ updated_steps: steps }) => (steps ? 'Approved with changes' : undefined),
};

function ownWords(kind, answer) {
  const isKnown = answer?.state === 'accepted' && answer.decision === 'approved';
  return isKnown ? OWN_WORDS[kind]?.(answer.payload) : undefined;
}
