/**
 * How far the session's trace was applied, and what to do with a frame.
 *
 * Spec: Rulings E2, E4.
 */
export class TraceCursor {
  constructor() {
    /** The session's durable trace; empty before `opened`. */
    this.traceId = '';
    this.lastSeq = 0;
  }

  /**
   * Start over on a trace.
   * @param {string} traceId
   * @param {number} lastSeq
   */
  moveTo(traceId, lastSeq) {
    this.traceId = traceId;
    this.lastSeq = lastSeq;
  }

  /**
   * Judge a frame and move past it when it is next.
   * @param {import('./types.js').Envelope} envelope
   * @returns {'next'|'copy'|'gap'|'foreign'} `foreign`: of a connection's own trace,
   *   which is not numbered with the session's.
   */
  take({ trace_id: traceId, seq }) {
    if (traceId !== this.traceId) return 'foreign';
    if (seq <= this.lastSeq) return 'copy';
    if (seq > this.lastSeq + 1) return 'gap';
    this.lastSeq = seq;
    return 'next';
  }
}
