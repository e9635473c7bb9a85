/** Permission prompts: may a tool do this? Spec: EMIT 7.1, 7.3; Rulings E16, E18. */

/** What is offered where the prompt offers nothing. */
const ALLOWANCE = { label: 'Allow', scope: 'once', allow: true };

/** There is always a way to say no. */
const DENIAL = { label: 'Deny', scope: 'once', allow: false };

const SCOPE_NOTES = { once: 'this call only', session: 'until the session ends' };

/** A digest tells nobody what it covers. */
const DIGEST = /(^|:)sha256:[0-9a-f]{64}$/;

/** @type {import('./kinds.js').PromptKind} */
export const permission = {
  icon: 'lock',
  title: ({ tool_name: tool }) => `Allow ${tool}?`,
  subject: ({ tool_name: tool }) => tool,
  blank: () => ({ message: '', isWhole: false }),
  choices(inner, { message }) {
    const options = offered(inner);
    const first = options.find((option) => option.allow);
    return options.map((option) => choice(option, option === first, message.trim()));
  },
};

/**
 * Return what an allowance for the session covers, where that can be told.
 * @param {Object<string, any>} inner
 * @returns {string} Empty when there is none, or nothing to tell of it.
 */
export function sessionCoverage({ options = [], permission_key: key = '' }) {
  const isOffered = options.some(({ allow, scope }) => allow && scope === 'session');
  return isOffered && !DIGEST.test(key) ? key : '';
}

function offered({ options = [] }) {
  const given = options.length > 0 ? options : [ALLOWANCE];
  return given.some((option) => !option.allow) ? given : [...given, DENIAL];
}

function choice({ label, scope, allow }, isFirst, message) {
  return {
    label,
    note: allow ? (SCOPE_NOTES[scope] ?? scope) : '',
    look: isFirst ? 'main' : allow ? 'plain' : 'quiet',
    isReady: true,
    decision: allow ? 'approved' : 'denied',
    payload: { scope, ...(message && { message }) },
  };
}
