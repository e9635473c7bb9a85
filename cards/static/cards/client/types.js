/**
 * Shapes on the wire and in the client's state; this module holds types only.
 *
 * Spec: EMIT 3, 6, 7, 8, 12, 15.1; Rulings E1, E5, E6, E15, E28.
 *
 * @typedef {Object} Envelope
 * @property {string} event_id
 * @property {string} session_id
 * @property {string} trace_id
 * @property {string} card_id Empty on `session.*` and `prompt.*`.
 * @property {string} card_kind
 * @property {number} seq Rises by one within a trace, from 1.
 * @property {string} timestamp RFC 3339, UTC.
 * @property {string} [parent_card_id]
 * @property {string} [agent_id]
 * @property {string} [agent_role]
 * @property {string} [agent_run_id]
 * @property {string} [severity]
 *
 * @typedef {Object} Frame
 * @property {string} type
 * @property {Envelope} [envelope] Missing on `pong`.
 * @property {Hint} [hint]
 * @property {Metrics} [metrics]
 * @property {Object<string, any>} [payload]
 *
 * @typedef {Object} Hint
 * @property {string} [title]
 * @property {string} [summary]
 * @property {string} [icon]
 * @property {string} [initial_state] `expanded`, `collapsed` or `hidden`.
 *
 * @typedef {Object<string, any>} Metrics
 *
 * @typedef {Object} ErrorInfo
 * @property {string} type
 * @property {string} [code]
 * @property {string} message For developers.
 * @property {string} [user_message] For the user's eyes.
 * @property {boolean} [retryable]
 * @property {number} [retry_after_ms]
 * @property {Object<string, any>} [details]
 * @property {{action: string, next_card_id?: string}} [recovery]
 *
 * @typedef {Object} Tick
 * @property {string} kind `progress`, `heartbeat`, `intent`, `note`, `escalation`.
 * @property {Object<string, any>} inner
 * @property {string} timestamp
 *
 * @typedef {'open'|'ok'|'failed'|'skipped'|'cancelled'} CardStatus
 *
 * @typedef {Object} Card
 * @property {string} cardId
 * @property {string} parentCardId Empty for a root.
 * @property {string} cardKind
 * @property {CardStatus} status
 * @property {Object<string, any>} payload Patched by `card.set` and `card.close`.
 * @property {Map<string, Map<number, string>>} channels Channel → index → text.
 * @property {Tick[]} ticks The newest 50.
 * @property {Tick[]} remarks The newest 50 of the ticks that are never dropped.
 * @property {Object<string, Tick>} latest The newest tick of each kind.
 * @property {Hint} hint
 * @property {Metrics|null} metrics
 * @property {ErrorInfo|null} endedBy Of a turn that was cut off: why, where its close
 *   does not say it.
 * @property {string} agentId
 * @property {string} agentRole
 * @property {number} events Frames applied to this card.
 * @property {string} addedAt
 * @property {string} updatedAt
 *
 * @typedef {Object} SessionError
 * @property {string} eventId
 * @property {string} traceId
 * @property {number} seq
 * @property {string} timestamp
 * @property {ErrorInfo} error
 *
 * @typedef {Object} Prompt A question to the user.
 * @property {string} requestId Its identity, however often it is sent.
 * @property {string} kind `permission`, `question`, `plan_review`, `step_decision`.
 * @property {Object<string, any>} inner What is asked.
 * @property {number} timeoutMs From `askedAt` on; 0 for none.
 * @property {number} seq
 * @property {string} askedAt
 * @property {string} agentId Who asks.
 * @property {string} turnCardId The turn that asked; empty when there is none.
 * @property {string} afterCardId The newest card of that turn when it asked; empty for
 *   none.
 * @property {Outcome|null} outcome Null while it is open.
 *
 * @typedef {Object} Outcome How a prompt ended.
 * @property {string} decision `approved`, `denied`, `continue`, `retry`, `cancelled`,
 *   `timeout`; `unknown` when the server only says that it waits for it no more.
 * @property {string} reason May be empty.
 *
 * @typedef {Object} SessionState
 * @property {string} sessionId
 * @property {string} traceId The session's durable trace; empty before it is known.
 * @property {number} lastSeq
 * @property {string} title
 * @property {string} model
 * @property {string} protocolVersion
 * @property {Object<string, boolean>} capabilities
 * @property {{event_id: string, text: string}[]} queue Messages waiting for a turn.
 * @property {SessionError[]} errors
 * @property {Map<string, Prompt>} prompts Open and settled ones, by request id.
 * @property {Map<string, Card>} cards In order of their `card.add`.
 * @property {Map<string, string[]>} tree Parent id (`''` = root) → card ids.
 *
 * @typedef {Object} SnapshotCard
 * @property {string} card_id
 * @property {string} card_kind
 * @property {string|null} parent_card_id
 * @property {string|null} agent_id
 * @property {CardStatus} status
 * @property {Hint} hint
 * @property {Object<string, any>} payload
 * @property {Object<string, string>} channels Channel → joined text.
 * @property {Metrics|null} metrics
 *
 * @typedef {Object} Snapshot
 * @property {string} session_id
 * @property {string} trace_id
 * @property {number} last_seq
 * @property {string} state
 * @property {SnapshotCard[]} cards
 * @property {Frame[]} prompts
 *
 * @typedef {Object} OutboxEntry A message of the user that the log does not show yet.
 * @property {string} eventId
 * @property {string} text
 * @property {Object<string, any>} frame
 * @property {'waiting'|'sent'|'refused'} state
 * @property {ErrorInfo|null} error Why it was refused.
 *
 * @typedef {Object} Answer What the user answers to a prompt.
 * @property {string} requestId
 * @property {string} decision
 * @property {Object<string, any>} payload
 * @property {'waiting'|'sent'|'refused'|'accepted'} state
 * @property {ErrorInfo|null} error Why it was refused; the prompt stays open.
 *
 * @typedef {Object} Stopping
 * @property {string} turnCardId The turn that is meant; empty for the one that runs or
 *   is about to.
 * @property {boolean} clearQueue Whether the messages that wait are stopped too.
 *
 * @typedef {Object} ConnectionStatus
 * @property {'connecting'|'open'|'waiting'|'signed_out'|'closed'} name
 * @property {number} attempt Failed attempts in a row.
 * @property {number} retryInMs Delay of the next attempt while `waiting`.
 * @property {string} reason Why the connection is `closed` or `waiting`; may be empty.
 */

export {};
