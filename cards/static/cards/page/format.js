/** Numbers and times as people read them. Pure. */

/**
 * @param {number} ms
 * @returns {string} `480 ms`, `2.3 s`, `41 s`, `4 min 12 s`.
 */
export function formatDuration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${trimZero(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${trimZero((bytes / 1024).toFixed(1))} kB`;
  return `${trimZero((bytes / 1024 ** 2).toFixed(1))} MB`;
}

/** @param {number} count */
export function formatCount(count) {
  if (count < 1000) return String(count);
  if (count < 1_000_000) return `${trimZero((count / 1000).toFixed(1))}k`;
  return `${trimZero((count / 1_000_000).toFixed(1))}M`;
}

/** @param {number} usd Small sums keep their digits. */
export function formatCost(usd) {
  if (usd === 0) return '$0';
  return `$${usd >= 1 ? usd.toFixed(2) : Number(usd.toPrecision(2))}`;
}

/**
 * @param {string} timestamp RFC 3339.
 * @param {number} nowMs
 * @returns {string} Short for lists: `now`, `5 min`, `3 h`, `2 d`, else a date.
 */
export function formatAge(timestamp, nowMs) {
  const minutes = Math.floor((nowMs - Date.parse(timestamp)) / 60_000);
  if (Number.isNaN(minutes)) return '';
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 60 * 24) return `${Math.floor(minutes / 60)} h`;
  if (minutes < 60 * 24 * 7) return `${Math.floor(minutes / (60 * 24))} d`;
  return new Date(timestamp).toLocaleDateString(undefined, {
    month: 'short',
    day: 'numeric',
  });
}

// Made once: making a formatter costs more than thousands of uses.
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });

/** @param {string} timestamp @returns {string} Empty when it is none. */
export function formatClock(timestamp) {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime()) ? '' : clock.format(date);
}

const moment = new Intl.DateTimeFormat(undefined, {
  day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit',
});

/** @param {string} timestamp @returns {string} Day and time; empty when it is none. */
export function formatMoment(timestamp) {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime()) ? '' : moment.format(date);
}

/** Return a word as it starts a sentence: `in_progress` → `In progress`. */
export function humanize(word) {
  const text = String(word).replaceAll('_', ' ').trim();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Return a value as text: strings as they are, the rest as indented JSON. */
export function asText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/**
 * Return what metrics tell, in reading order.
 * @param {Object<string, any>|null} metrics
 * @returns {string[]}
 */
export function metricParts(metrics) {
  if (!metrics) return [];
  const parts = [];
  const add = (name, format) => {
    if (typeof metrics[name] === 'number') parts.push(format(metrics[name]));
  };
  add('duration_ms', formatDuration);
  add('tokens_in', (n) => `${formatCount(n)} tokens in`);
  add('tokens_out', (n) => `${formatCount(n)} out`);
  add('cache_read_tokens', (n) => `${formatCount(n)} from cache`);
  add('cache_write_tokens', (n) => `${formatCount(n)} to cache`);
  add('cost_usd', formatCost);
  if (metrics.model) parts.push(metrics.model);
  return parts;
}

/**
 * Return what of a budget is used, one entry per measure.
 * @param {Object<string, number>} [spent]
 * @param {Object<string, number>} [limit]
 * @returns {{name: string, text: string, ratio: number|null}[]}
 */
export function budgetRows(spent = {}, limit = {}) {
  return [...new Set([...Object.keys(spent), ...Object.keys(limit)])].map((name) => {
    const format = name === 'usd' ? formatCost : formatCount;
    const used = format(spent[name] ?? 0);
    const label = name === 'usd' ? '' : ` ${name}`;
    if (!limit[name]) return { name, text: `${used}${label}`, ratio: null };
    return {
      name,
      text: `${used} of ${format(limit[name])}${label}`,
      ratio: Math.min(1, (spent[name] ?? 0) / limit[name]),
    };
  });
}

function trimZero(text) {
  return text.replace(/\.0$/, '');
}
