/** Line icons on a 20 by 20 grid; they inherit the colour of the text. */

import { html, svg } from '../vendor/lit-html/lit-html.js';

const PATHS = {
  agent: svg`<circle cx="10" cy="7" r="3"/><path d="M4 17c.7-3.2 3-5 6-5s5.3 1.8 6 5"/>`,
  alert: svg`<path d="M10 3.5 17.5 16.500h-15z"/><path d="M10 8.500v3.500M10 14.300v.1"/>`,
  brain: svg`<path d="M10 4.500a2.5 2.5 0 0 0-4.9.6A3 3 0 0 0 4.5 10a3 3 0 0 0 1.7 4.700A2.3 2.3 0 0 0 10 15.500z"/><path d="M10 4.500a2.5 2.5 0 0 1 4.9.6 3 3 0 0 1 .6 4.9 3 3 0 0 1-1.7 4.7 2.3 2.3 0 0 1-3.8.8"/>`,
  check: svg`<path d="m5.5 10.5 3 3 6-7"/>`,
  chevron: svg`<path d="m8 6 4 4-4 4"/>`,
  close: svg`<path d="m5.5 5.5 9 9M14.5 5.500l-9 9"/>`,
  cross: svg`<path d="m6.5 6.5 7 7M13.5 6.500l-7 7"/>`,
  dash: svg`<path d="M6 10h8"/>`,
  down: svg`<path d="M10 4v11M5.5 11 10 15.5 14.5 11"/>`,
  clip: svg`<path d="m15.500 9.500-5.600 5.600a3.300 3.300 0 0 1-4.700-4.700l6.300-6.300a2.200 2.200 0 0 1 3.100 3.100l-6.200 6.200a1.100 1.100 0 0 1-1.600-1.600l5.500-5.500"/>`,
  download: svg`<path d="M10 3.500v9M6 9l4 4 4-4M4 16.500h12"/>`,
  file: svg`<path d="M5.5 3h6l3.5 3.500V17h-9.500z"/><path d="M11.5 3v3.500H15"/>`,
  gauge: svg`<path d="M3.5 14.500a7 7 0 1 1 13 0"/><path d="m10 12 3-4"/>`,
  info: svg`<circle cx="10" cy="10" r="7"/><path d="M10 9.500v4M10 6.800v.1"/>`,
  memory: svg`<ellipse cx="10" cy="5.5" rx="5.5" ry="2.3"/><path d="M4.5 5.500v9c0 1.3 2.5 2.3 5.5 2.300s5.5-1 5.5-2.300v-9M4.5 10c0 1.3 2.5 2.3 5.5 2.300s5.5-1 5.5-2.3"/>`,
  menu: svg`<path d="M3.5 6h13M3.5 10h13M3.5 14h8"/>`,
  plan: svg`<path d="M8.5 5.500H17M8.5 10H17M8.5 14.500H17"/><path d="m3 5.5 1 1 2-2M3 10l1 1 2-2M3.5 14.500h2"/>`,
  plus: svg`<path d="M10 4.500v11M4.5 10h11"/>`,
  question: svg`<circle cx="10" cy="10" r="7"/><path d="M8 8.200a2 2 0 1 1 2.900 1.800c-.6.3-.9.7-.9 1.500M10 13.700v.1"/>`,
  search: svg`<circle cx="9" cy="9" r="5"/><path d="m13 13 3.5 3.5"/>`,
  send: svg`<path d="M10 16V4.500M5 9.500l5-5 5 5"/>`,
  clock: svg`<circle cx="10" cy="10" r="6.5"/><path d="M10 6.300V10l2.500 1.800"/>`,
  lock: svg`<rect x="4.5" y="9" width="11" height="7.500" rx="2"/><path d="M7 9V6.500a3 3 0 0 1 6 0V9"/>`,
  retry: svg`<path d="M15.5 8.500A6 6 0 1 0 16 11"/><path d="M16 4.500v4h-4"/>`,
  square: svg`<rect x="6.5" y="6.5" width="7" height="7" rx="1"/>`,
  stop: svg`<rect x="5.5" y="5.5" width="9" height="9" rx="1.8"/>`,
  team: svg`<circle cx="7.5" cy="7.5" r="2.5"/><path d="M2.5 16c.6-2.8 2.5-4.3 5-4.300s4.4 1.5 5 4.3"/><path d="M12.5 5.300a2.5 2.5 0 0 1 0 4.500M14 12c1.8.5 3 1.9 3.5 4"/>`,
  terminal: svg`<rect x="2.5" y="4" width="15" height="12" rx="2"/><path d="m5.5 8 2.5 2-2.5 2M10 12.500h4"/>`,
  up: svg`<path d="M10 16V4.500M5.500 9 10 4.500 14.500 9"/>`,
  tool: svg`<path d="M12.8 3.300a4 4 0 0 0-4.6 5.300L3.3 13.500a2.2 2.2 0 0 0 3.2 3.200l4.9-4.900a4 4 0 0 0 5.3-4.600l-2.4 2.3-2.4-.6-.6-2.400z"/>`,
};

/**
 * @param {keyof PATHS} name Unknown names give an empty icon.
 * @returns {import('../vendor/lit-html/lit-html.js').TemplateResult}
 */
export function icon(name) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
    ${PATHS[name] ?? svg``}
  </svg>`;
}
