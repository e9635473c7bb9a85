/**
 * The questions to the user: which are open, and how the others ended.
 *
 * A prompt is known by its request id, however often it is sent. It outlives its turn:
 * after a crash it may still be answered.
 *
 * Spec: EMIT 2.4.2, 2.4.4, 7; Rulings E3, E15, E17.
 *
 * @typedef {import('./draft.js').StateDraft} StateDraft
 * @typedef {import('./types.js').ErrorInfo} ErrorInfo
 * @typedef {import('./types.js').Frame} Frame
 * @typedef {import('./types.js').Prompt} Prompt
 * @typedef {import('./types.js').SessionState} SessionState
 */

import { StateDraft } from './draft.js';
import { lastTurn } from './turns.js';

/** The error for an answer that nobody waits for any more. Spec: Ruling E15. */
export const UNKNOWN_REQUEST_ID = 'UNKNOWN_REQUEST_ID';

/** How a prompt ended of which only that much is known. */
const UNKNOWN = { decision: 'unknown', reason: '' };

/** @param {SessionState} state @returns {Prompt[]} In the order they were asked. */
export function openPrompts({ prompts }) {
  return [...prompts.values()]
    .filter((prompt) => prompt.outcome === null)
    .sort((one, other) => one.seq - other.seq);
}

/**
 * Open a prompt. One that is sent again changes nothing, unless only the server's word
 * that it does not know it had closed it.
 * @param {StateDraft} draft
 * @param {Frame} frame A `prompt.user`.
 */
export function takePrompt(draft, frame) {
  if (!frame.payload?.request_id) return;
  const known = draft.next.prompts.get(frame.payload.request_id);
  if (!known) draft.putPrompt(newPrompt(draft.next, frame));
  else if (known.outcome === UNKNOWN) draft.putPrompt({ ...known, outcome: null });
}

/**
 * Close a prompt for good.
 * @param {StateDraft} draft
 * @param {Frame} frame A `prompt.reply`.
 */
export function settlePrompt(draft, { payload }) {
  const known = draft.next.prompts.get(payload?.request_id);
  if (!known || isSettled(known)) return;
  const outcome = { decision: payload.decision, reason: payload.reason ?? '' };
  draft.putPrompt({ ...known, outcome });
}

/**
 * Note an error that answers an answer.
 * @param {StateDraft} draft
 * @param {ErrorInfo} [error]
 * @returns {boolean} Whether it does: such an error is told at its prompt.
 */
export function noteAnswerError(draft, error) {
  const known = draft.next.prompts.get(error?.details?.request_id);
  if (!known) return false;
  const isGone = error.code === UNKNOWN_REQUEST_ID && known.outcome === null;
  if (isGone) draft.putPrompt({ ...known, outcome: UNKNOWN });
  return true;
}

/**
 * Return a state's prompts after a snapshot: it lists what is open, and nothing else.
 * @param {SessionState} state With the snapshot's cards.
 * @param {Frame[]} frames The open prompts.
 * @returns {Map<string, Prompt>}
 */
export function withPromptsOf(state, frames) {
  const openIds = new Set(frames.map(({ payload }) => payload.request_id));
  const known = [...state.prompts].filter(([id, { outcome }]) => outcome || openIds.has(id));
  const draft = new StateDraft({ ...state, prompts: new Map(known) });
  for (const frame of frames) takePrompt(draft, frame);
  return draft.next.prompts;
}

function isSettled({ outcome }) {
  return outcome !== null && outcome !== UNKNOWN;
}

function newPrompt(state, { envelope, payload }) {
  const turnCardId = lastTurn(state)?.cardId ?? '';
  return {
    requestId: payload.request_id,
    kind: payload.kind,
    inner: payload.inner ?? {},
    timeoutMs: payload.timeout_ms ?? 0,
    seq: envelope.seq,
    askedAt: envelope.timestamp,
    agentId: envelope.agent_id ?? '',
    turnCardId,
    afterCardId: state.tree.get(turnCardId)?.at(-1) ?? '',
    outcome: null,
  };
}
