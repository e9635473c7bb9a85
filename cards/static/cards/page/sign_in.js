/** The way to the sign-in page and back. Spec: Ruling E27. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { icon } from './icons.js';

const { signInUrl, signedInName } = document.documentElement.dataset;

/** @returns {string} Of the sign-in page, which leads back to what is shown now. */
export function signInAddress() {
  const next = encodeURIComponent(location.pathname + location.search);
  return `${signInUrl || '/sign-in/'}?next=${next}`;
}

/** @returns {import('../vendor/lit-html/lit-html.js').TemplateResult} */
export function signInLink() {
  return html`<a class="link" href=${signInAddress()}>Sign in</a>`;
}

/**
 * Say that the server lets nobody in without a name, and how to go on.
 * @param {HTMLElement} root
 * @param {boolean} isSignedOut
 */
export function drawSignedOut(root, isSignedOut) {
  const notice = html`<div class="signed-out">
    ${icon('lock')}
    <div>
      <strong>${signedInName ? 'You are signed out' : 'You are not signed in'}</strong>
      <p>What you have written is kept in this tab.</p>
    </div>
    <a class="button" href=${signInAddress()}>Sign in</a>
  </div>`;
  render(isSignedOut ? notice : nothing, root);
}
