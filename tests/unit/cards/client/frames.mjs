/** Frames as the server sends them, for the tests of the client. */

export const TRACE = 'tr_0123456789abcdef01234567';
export const SESSION = 'sess_1';

/** A logged frame of the session's trace. */
export function logged(seq, type, fields = {}) {
  const { payload = {}, hint, metrics, ...envelope } = fields;
  return {
    type,
    envelope: {
      event_id: `evt_${seq}`,
      session_id: SESSION,
      trace_id: TRACE,
      card_id: '',
      card_kind: '',
      seq,
      timestamp: `2026-01-01T00:00:${String(seq % 60).padStart(2, '0')}.000Z`,
      ...envelope,
    },
    payload,
    ...(hint && { hint }),
    ...(metrics && { metrics }),
  };
}

/** A `card.add`. */
export function add(seq, cardId, kind, fields = {}) {
  return logged(seq, 'card.add', { card_id: cardId, card_kind: kind, ...fields });
}

/** Any other card action. */
export function on(seq, action, cardId, payload, fields = {}) {
  return logged(seq, `card.${action}`, { card_id: cardId, payload, ...fields });
}

/** A `prompt.user`; sent again it is the same frame under the same seq. */
export function prompt(seq, requestId, fields = {}) {
  const { kind = 'question', inner = { question: 'Why?', allow_custom: true }, ...rest } = fields;
  const payload = { request_id: requestId, kind, inner, timeout_ms: 0 };
  return logged(seq, 'prompt.user', { payload, agent_id: 'main', ...rest });
}

/** The `prompt.reply` that settles it. */
export function reply(seq, requestId, decision, reason) {
  const payload = { request_id: requestId, decision, ...(reason && { reason }) };
  return logged(seq, 'prompt.reply', { payload });
}

/** The error that answers an answer. */
export function answerError(requestId, code, fields = {}) {
  const details = { request_id: requestId, ...fields };
  return ephemeral('error', { error: { type: 'invalid_input', code, message: code, details } });
}

let connectionFrames = 0;

/** A frame of the connection's own trace, as `opened` or `resumed`. */
export function ephemeral(kind, inner) {
  connectionFrames += 1;
  return {
    type: 'session.event',
    envelope: {
      event_id: `evt_e${connectionFrames}`,
      session_id: SESSION,
      trace_id: 'tr_connection',
      card_id: '',
      card_kind: '',
      seq: 1,
      timestamp: '2026-01-01T00:00:00.000Z',
    },
    payload: { kind, inner },
  };
}

/** The greeting of a connection. */
export function opened(lastSeq, traceId = TRACE, capabilities = { recovery: true }) {
  return ephemeral('opened', {
    protocol_version: '2.0',
    model: 'model-1',
    capabilities,
    trace_id: traceId,
    last_seq: lastSeq,
  });
}

/** The answer to a resume. */
export function resumed(fromSeq, toSeq) {
  return ephemeral('resumed', { trace_id: TRACE, from_seq: fromSeq, to_seq: toSeq });
}
