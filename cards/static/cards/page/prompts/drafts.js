/** What was entered at prompts and not sent; it lives as long as the tab. */

import { draftOf, keepDraft } from '../drafts.js';
import { kindOf } from './kinds.js';

/**
 * @typedef {import('../../client/types.js').Prompt} Prompt
 * @typedef {Object<string, any>} PromptDraft Plain data, its shape by kind.
 */

export class PromptDrafts {
  /** @type {Map<string, PromptDraft>} */
  #byId = new Map();

  /**
   * Return what was entered at a prompt; the blank draft when nothing was.
   * @param {Prompt} prompt
   * @param {Map<string, Prompt>} prompts All of the session.
   */
  of(prompt, prompts) {
    const { requestId, kind, inner } = prompt;
    const known = this.#byId.get(requestId);
    if (known) return known;
    const kept = draftOf(nameOf(requestId));
    const draft = kept ? JSON.parse(kept) : (this.#ofRejected(prompt, prompts) ?? kindOf(kind).blank(inner));
    this.#byId.set(requestId, draft);
    return draft;
  }

  /** @param {string} requestId @param {PromptDraft} draft */
  set(requestId, draft) {
    this.#byId.set(requestId, draft);
    keepDraft(nameOf(requestId), JSON.stringify(draft));
  }

  /** @param {string} requestId */
  forget(requestId) {
    this.#byId.delete(requestId);
    keepDraft(nameOf(requestId), '');
  }

  /** Whose edit of a plan is asked about again goes on with it. Spec: Ruling E19. */
  #ofRejected({ requestId, inner }, prompts) {
    if (!inner.rejection_reason) return undefined;
    const before = [...prompts.values()].find(
      (each) => each.inner.plan_id === inner.plan_id && this.#byId.has(each.requestId),
    );
    const draft = before && this.#byId.get(before.requestId);
    if (draft) this.set(requestId, draft);
    return draft;
  }
}

/** No session id has a slash in it. */
function nameOf(requestId) {
  return `prompt/${requestId}`;
}
