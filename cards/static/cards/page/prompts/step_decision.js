/** Step decisions: what now, after a failure? Spec: EMIT 7.1, 7.3; Rulings E16, E19. */

/** @type {import('./kinds.js').PromptKind} */
export const stepDecision = {
  icon: 'alert',
  title: (inner) => `${nameOf(inner)} failed`,
  subject: (inner) => inner.step_description || nameOf(inner),
  blank: () => ({ note: '' }),
  choices({ scope, allow_retry: mayRetry }, { note }) {
    const payload = note.trim() ? { note: note.trim() } : {};
    const choice = (decision, label, hint, look) => ({
      label, note: hint, look, isReady: true, decision, payload,
    });
    const goesOn = scope === 'plan' ? 'with what there is' : 'without this step';
    return [
      choice('continue', 'Continue', goesOn, mayRetry ? 'plain' : 'main'),
      ...(mayRetry ? [choice('retry', 'Try again', 'from the start of the step', 'main')] : []),
      choice('cancel', 'Stop', 'ends the plan', 'quiet'),
    ];
  },
};

function nameOf({ scope, step_id: id }) {
  return scope === 'plan' ? 'The plan' : `Step ${id ?? ''}`.trim();
}
