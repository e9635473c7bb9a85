/** Questions: choices, free text, or both. Spec: EMIT 7.1, 7.3; Ruling E16. */

/**
 * @typedef {Object} QuestionDraft
 * @property {string[]} selected Labels of the chosen options.
 * @property {string} words The user's own.
 * @property {boolean} isOwn Of several options the user's own words are chosen.
 */

/** @type {import('./kinds.js').PromptKind} */
export const question = {
  icon: 'question',
  title: () => 'Question',
  subject: ({ question: text }) => text,
  blank: () => ({ selected: [], words: '', isOwn: false }),
  choices(inner, draft) {
    const payload = payloadOf(inner, draft);
    const isReady = payload.selected_options.length > 0 || payload.custom_text !== '';
    return [
      { label: 'Answer', look: 'main', isReady, isDefault: true, decision: 'approved', payload },
      { label: 'Decline to answer', look: 'quiet', isReady: true, decision: 'denied', payload: {} },
    ];
  },
};

/** @returns {string[]} What may be chosen. */
export function labelsOf({ options = [] }) {
  return options.map(({ label }) => label);
}

/** Tell whether the user's own words are one of several choices that exclude others. */
export function excludesWords(inner) {
  return !inner.multi && labelsOf(inner).length > 0;
}

/**
 * @param {Object<string, any>} inner
 * @param {QuestionDraft} draft
 * @param {string} label
 * @param {boolean} isChosen
 * @returns {QuestionDraft}
 */
export function withChoice(inner, draft, label, isChosen) {
  const others = inner.multi ? draft.selected.filter((each) => each !== label) : [];
  return { ...draft, selected: isChosen ? [...others, label] : others, isOwn: false };
}

/** @param {QuestionDraft} draft @returns {QuestionDraft} With own words chosen. */
export function withOwn(inner, draft) {
  return excludesWords(inner) ? { ...draft, selected: [], isOwn: true } : draft;
}

/** @param {QuestionDraft} draft @param {string} words @returns {QuestionDraft} */
export function withWords(inner, draft, words) {
  return { ...withOwn(inner, draft), words };
}

function payloadOf(inner, { selected, words, isOwn }) {
  const countsWords = inner.allow_custom && (isOwn || !excludesWords(inner));
  return {
    selected_options: labelsOf(inner).filter((label) => selected.includes(label)),
    custom_text: countsWords ? words.trim() : '',
  };
}
