/** How old a prompt is and how long it waits. Pure. Spec: EMIT 2.4.4; Ruling E17. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Older prompts may be gone on the server. Spec: EMIT 2.4.4. */
const OLD_FROM_DAYS = 7;

/**
 * @param {import('../../client/types.js').Prompt} prompt
 * @param {number} nowMs
 * @returns {string} Empty for a fresh one.
 */
export function ageHint({ askedAt }, nowMs) {
  const days = Math.floor((nowMs - Date.parse(askedAt)) / DAY_MS);
  if (!(days >= OLD_FROM_DAYS)) return '';
  return `This question is ${days} days old; it may have expired.`;
}

/**
 * @param {import('../../client/types.js').Prompt} prompt
 * @param {number} nowMs
 * @returns {string} Roughly; empty when there is no end.
 */
export function timeLeft({ askedAt, timeoutMs }, nowMs) {
  if (!timeoutMs) return '';
  const leftMs = Date.parse(askedAt) + timeoutMs - nowMs;
  if (leftMs <= 0) return 'time is up';
  if (leftMs < MINUTE_MS) return 'less than a minute left';
  if (leftMs < HOUR_MS) return counted(leftMs / MINUTE_MS, 'minute');
  if (leftMs < DAY_MS) return counted(leftMs / HOUR_MS, 'hour');
  return counted(leftMs / DAY_MS, 'day');
}

function counted(amount, unit) {
  const count = Math.round(amount);
  return `about ${count} ${unit}${count === 1 ? '' : 's'} left`;
}
