/** The list of conversations; on a phone a drawer. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { repeat } from '../vendor/lit-html/directives/repeat.js';
import { fetchSessions, NotSignedIn } from './api.js';
import { formatAge } from './format.js';
import { icon } from './icons.js';
import { addressOf } from './route.js';
import { signInLink } from './sign_in.js';

/** Several changes in a row cause one request. */
const REFRESH_DELAY_MS = 400;

/** A session that works is looked at again after this: it may have ended elsewhere. */
const RUNNING_REFRESH_MS = 10_000;

const narrow = matchMedia('(max-width: 800px)');

export class Sidebar {
  #element;
  #list;
  #backdrop;
  #onOpenSession;
  #sessions = [];
  #next = null;
  #error = null;
  #isLoaded = false;
  #current = '';
  #opener = null;
  #timer = 0;

  /**
   * @param {HTMLElement} element With a part `.sessions` that the list is drawn into.
   * @param {HTMLElement} backdrop
   * @param {(sessionId: string) => void} onOpenSession Empty id: a new one.
   */
  constructor(element, backdrop, onOpenSession) {
    this.#element = element;
    this.#list = element.querySelector('.sessions');
    this.#backdrop = backdrop;
    this.#onOpenSession = onOpenSession;
    backdrop.addEventListener('click', () => this.toggle(false));
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.isOpen) this.#closeAndReturn();
    });
    narrow.addEventListener('change', () => this.toggle(false));
    this.toggle(false);
    this.#draw();
  }

  /** Show or hide the drawer; on a wide screen the list is always there. */
  toggle(isOpen = !this.isOpen) {
    this.isOpen = isOpen && narrow.matches;
    this.#element.classList.toggle('is-open', this.isOpen);
    this.#element.inert = narrow.matches && !this.isOpen;
    this.#backdrop.hidden = !this.isOpen;
    if (!this.isOpen) return;
    this.#opener = document.activeElement;
    this.#element.querySelector('a, button').focus();
  }

  /** The focus goes back to where the drawer was opened. */
  #closeAndReturn() {
    this.toggle(false);
    this.#opener?.focus();
  }

  /** Mark the conversation that is shown. @param {string} sessionId */
  select(sessionId) {
    this.#current = sessionId;
    this.#draw();
  }

  /** Leave out a conversation that is gone. @param {string} sessionId */
  forget(sessionId) {
    this.#sessions = this.#sessions.filter((session) => session.session_id !== sessionId);
    this.#draw();
  }

  /** Load the first page of the list again, soon. */
  refresh() {
    this.#loadIn(REFRESH_DELAY_MS);
  }

  #loadIn(delayMs) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), delayMs);
  }

  /** @returns {string} The title of a session in the list; empty when unknown. */
  titleOf(sessionId) {
    return this.#sessions.find((s) => s.session_id === sessionId)?.title ?? '';
  }

  async #load(pageUrl) {
    try {
      const { results, next } = await fetchSessions(pageUrl);
      this.#merge(results, !pageUrl);
      this.#next = pageUrl || !this.#isLoaded ? next : (this.#next ?? next);
      this.#isLoaded = true;
      this.#error = null;
      if (this.#sessions.some(isRunning)) this.#loadIn(RUNNING_REFRESH_MS);
    } catch (error) {
      this.#error = error;
    }
    this.#draw();
    this.#element.dispatchEvent(new CustomEvent('sessions-loaded'));
  }

  /** Newest first: a refreshed first page goes before what was loaded further down. */
  #merge(results, isFirstPage) {
    const fresh = new Set(results.map((session) => session.session_id));
    const others = this.#sessions.filter((session) => !fresh.has(session.session_id));
    this.#sessions = isFirstPage ? [...results, ...others] : [...others, ...results];
  }

  #draw() {
    render(
      html`
        <div class="brand"><span class="brand-mark"></span>Cardwire</div>
        <a class="new-session" href="/" @click=${(event) => this.#follow(event, '')}>
          ${icon('plus')}New conversation
        </a>
        <div class="session-list">
          ${this.#error ? this.#trouble(this.#error) : nothing}
          ${this.#isLoaded && !this.#error && this.#sessions.length === 0
            ? html`<p class="list-note">Your conversations will be listed here.</p>`
            : nothing}
          <ul>
            ${repeat(this.#sessions, (s) => s.session_id, (s) => this.#row(s))}
          </ul>
          ${this.#next
            ? html`<button type="button" class="link more" @click=${() => this.#load(this.#next)}>
                Show older conversations
              </button>`
            : nothing}
        </div>
      `,
      this.#list,
    );
  }

  #trouble(error) {
    if (error instanceof NotSignedIn) {
      return html`<p class="list-note">${signInLink()} to see your conversations.</p>`;
    }
    return html`<p class="list-note" role="alert">
      The list cannot be loaded (${error.message}).
      <button type="button" class="link" @click=${() => this.#load()}>Try again</button>
    </p>`;
  }

  #row(session) {
    const isCurrent = session.session_id === this.#current;
    const title = session.title || 'Untitled';
    return html`<li>
      <a
        class="session ${isCurrent ? 'is-current' : ''}"
        href=${addressOf(session.session_id)}
        aria-current=${isCurrent ? 'page' : 'false'}
        title=${title}
        data-session-id=${session.session_id}
        @click=${(event) => this.#follow(event, session.session_id)}
      >
        <span class="session-title">${title}</span>
        ${isRunning(session)
          ? html`<span class="mark mark-open"><span class="sr-only">Running</span></span>`
          : html`<span class="session-age">${formatAge(session.last_activity_at, Date.now())}</span>`}
      </a>
    </li>`;
  }

  /** A plain click switches in place; with a modifier the link is a link. */
  #follow(event, sessionId) {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    this.toggle(false);
    this.#onOpenSession(sessionId);
  }
}

function isRunning(session) {
  return session.state === 'running';
}
