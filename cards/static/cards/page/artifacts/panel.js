/**
 * The side panel: one file, its versions, what is in it and what changed.
 *
 * It opens with the focus in it, Escape closes it, and the focus goes back. Where there
 * is no room beside the conversation it covers it.
 *
 * @typedef {import('../../client/types.js').SessionState} SessionState
 */

import { html, nothing, render } from '../../vendor/lit-html/lit-html.js';
import { formatBytes, formatMoment, humanize } from '../format.js';
import { icon } from '../icons.js';
import { contentUrl, fetchArtifact } from './files.js';
import { isArtifactId, shownName } from './names.js';
import { canCompare, loadChanges, loadPreview } from './preview.js';

/** As the style sheet has it. */
const covering = matchMedia('(max-width: 1100px)');

/** What the panel shows; a new object per file. */
const BLANK = {
  artifactId: '',
  /** @type {import('./files.js').ArtifactFacts|null} */
  artifact: null,
  version: 0,
  /** The version that the changes are counted from; 0 shows the content. */
  since: 0,
  trouble: '',
  isLoading: false,
};

export class ArtifactPanel {
  #root;
  #beneath;
  #say;
  #onLeave;
  #shown = { ...BLANK };
  #preview = null;
  #loading = new AbortController();
  #opener = null;
  #questionCount = 0;

  /**
   * @param {HTMLElement} root
   * @param {Object} page
   * @param {HTMLElement} page.beneath What a panel covers where there is little room.
   * @param {(text: string) => void} page.say Aloud.
   * @param {() => void} page.onLeave The focus has nowhere to go back to.
   */
  constructor(root, { beneath, say, onLeave }) {
    this.#root = root;
    this.#beneath = beneath;
    this.#say = say;
    this.#onLeave = onLeave;
    root.addEventListener('keydown', (event) => this.#handleKey(event));
    covering.addEventListener('change', () => {
      this.#cover();
      this.#draw();
    });
  }

  get isOpen() {
    return !this.#root.hidden;
  }

  /**
   * Show a file.
   * @param {string} artifactId
   * @param {number} [version] The newest if it is not given or not there.
   */
  async open(artifactId, version = 0) {
    if (!this.#root.contains(document.activeElement)) this.#opener = document.activeElement;
    this.#shown = { ...BLANK, artifactId, version, isLoading: true };
    this.#drop();
    this.#root.hidden = false;
    this.#cover();
    this.#draw();
    this.#focus();
    await this.#loadFacts();
  }

  /** The focus goes back to where the panel was opened. */
  close() {
    if (!this.isOpen) return;
    this.clear();
    if (this.#opener?.isConnected) this.#opener.focus();
    else this.#onLeave();
  }

  /** Close without moving the focus, as between two sessions. */
  clear() {
    this.#root.hidden = true;
    this.#shown = { ...BLANK };
    this.#drop();
    this.#cover();
    this.#draw();
  }

  /**
   * Offer a version that came while the file is shown.
   * @param {SessionState} state
   * @param {Iterable<string>} touched
   */
  follow(state, touched) {
    const { artifactId, artifact } = this.#shown;
    if (!artifact) return;
    for (const cardId of touched) {
      const { cardKind, payload } = state.cards.get(cardId) ?? {};
      const isOurs = cardKind === 'artifact' && payload.artifact_id === artifactId;
      if (isOurs && payload.version > artifact.version) return void this.#refreshFacts();
    }
  }

  /** Tell how many questions wait for the user, who may not see them. */
  noteQuestions(count) {
    if (count === this.#questionCount) return;
    this.#questionCount = count;
    this.#draw();
  }

  #handleKey(event) {
    if (event.key !== 'Escape' || event.isComposing) return;
    // Outside of the panel Escape stops the turn.
    event.stopPropagation();
    this.close();
  }

  /** What is covered can be neither reached nor read. */
  #cover() {
    this.#beneath.inert = this.isOpen && covering.matches;
  }

  #drop() {
    this.#loading.abort();
    this.#loading = new AbortController();
    this.#preview?.release?.();
    this.#preview = null;
  }

  async #loadFacts() {
    const { artifactId, version } = this.#shown;
    // What is no id is not asked for.
    if (!isArtifactId(artifactId)) return this.#fail(new Error('This file is not available.'));
    await this.#attempt(async (signal) => {
      const artifact = await fetchArtifact(artifactId, signal);
      const isThere = artifact.versions.some((each) => each.version === version);
      this.#set({ artifact, version: isThere ? version : artifact.version });
      this.#say(`${shownName(artifact.name)} is open.`);
      await this.#loadContent();
    });
  }

  async #refreshFacts() {
    const { signal } = this.#loading;
    try {
      const artifact = await fetchArtifact(this.#shown.artifactId, signal);
      if (!signal.aborted) this.#set({ artifact });
    } catch {
      // Nothing is lost: the version is offered when the file is opened again.
    }
  }

  async #loadContent() {
    this.#drop();
    this.#set({ isLoading: true, trouble: '' });
    const { artifact, since } = this.#shown;
    await this.#attempt(async (signal) => {
      const loading = since
        ? loadChanges(artifact, this.#versionOf(since), this.#versionOf(this.#shown.version), signal)
        : loadPreview(artifact, this.#versionOf(this.#shown.version), signal);
      const preview = await loading;
      if (signal.aborted) return void preview.release?.();
      this.#preview = preview;
      this.#set({ isLoading: false });
      if (preview.words) this.#say(preview.words);
    });
  }

  /** Do something of which nothing is shown once the panel has gone on. */
  async #attempt(action) {
    const { signal } = this.#loading;
    try {
      await action(signal);
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  #fail(error) {
    // What fetch says of a network that is away is for developers.
    const isNetwork = error instanceof TypeError;
    this.#set({
      isLoading: false,
      trouble: isNetwork ? 'The file cannot be loaded: the server does not answer.' : error.message,
    });
  }

  #set(fields) {
    this.#shown = { ...this.#shown, ...fields };
    this.#draw();
  }

  #versionOf(number) {
    return this.#shown.artifact.versions.find((each) => each.version === number);
  }

  #choose(version, since = 0) {
    // Nothing changed since itself, nor since what came later.
    this.#set({ version, since: since < version ? since : 0 });
    this.#loadContent();
  }

  #draw() {
    const hadFocus = this.#root.contains(document.activeElement);
    render(this.isOpen ? this.#panel() : nothing, this.#root);
    // What was pressed may be gone.
    if (hadFocus && this.isOpen && !this.#root.contains(document.activeElement)) this.#focus();
  }

  #focus() {
    this.#root.focus({ preventScroll: true });
  }

  #panel() {
    const { artifact, trouble, isLoading } = this.#shown;
    const name = artifact ? shownName(artifact.name) : 'File';
    return html`<header class="panel-head">
        <h2 id="panel-title" title=${name}><bdi>${name}</bdi></h2>
        ${artifact ? this.#download(artifact) : nothing}
        <button type="button" class="icon-button" @click=${() => this.close()}>
          ${icon('close')}<span class="sr-only">Close the file</span>
        </button>
      </header>
      ${artifact ? this.#facts(artifact) : nothing}
      <div role="status">
        ${this.#questions()} ${artifact ? this.#offer(artifact) : nothing}
      </div>
      <div class="panel-body" aria-busy=${String(isLoading)}>
        ${trouble ? this.#trouble(trouble) : nothing}
        ${isLoading ? html`<p class="panel-empty">Loading…</p>` : nothing}
        ${this.#preview?.content ?? nothing}
      </div>`;
  }

  #facts(artifact) {
    const { version, since } = this.#shown;
    const shown = this.#versionOf(version);
    const facts = [
      shown.role ? humanize(shown.role) : '',
      shown.mime_type,
      formatBytes(shown.size_bytes),
      // What follows an upload is the assistant's.
      artifact.source === 'user' && version === 1 ? 'from you' : '',
      formatMoment(shown.created_at),
    ];
    return html`<p class="panel-facts">${facts.filter(Boolean).join(' · ')}</p>
      ${shown.description ? html`<p class="panel-about">${shown.description}</p>` : nothing}
      <div class="panel-tools">
        ${this.#versionPicker(artifact)} ${this.#changesPicker(artifact, shown, since)}
      </div>`;
  }

  #download({ artifact_id: id }) {
    const address = contentUrl(id, this.#shown.version, { isDownload: true });
    return html`<a class="button" href=${address} download>${icon('download')}<span>Download</span></a>`;
  }

  #versionPicker({ versions, version: newest }) {
    if (versions.length < 2) return nothing;
    const { version, since } = this.#shown;
    return html`<select
      class="panel-choice"
      aria-label="Version"
      @change=${({ target }) => this.#choose(Number(target.value), since)}
    >
      ${versions.toReversed().map(
        (each) => html`<option value=${each.version} .selected=${each.version === version}>
          Version ${each.version}${each.version === newest ? ' (newest)' : ''}
        </option>`,
      )}
    </select>`;
  }

  #changesPicker({ versions }, shown, since) {
    const earlier = versions.filter(
      (each) => each.version < shown.version && canCompare(each, shown),
    );
    if (earlier.length === 0) return nothing;
    return html`<select
      class="panel-choice"
      aria-label="What is shown"
      @change=${({ target }) => this.#choose(shown.version, Number(target.value))}
    >
      <option value="0" .selected=${since === 0}>Content</option>
      ${earlier.toReversed().map(
        (each) => html`<option value=${each.version} .selected=${each.version === since}>
          Changes since version ${each.version}
        </option>`,
      )}
    </select>`;
  }

  #questions() {
    if (this.#questionCount === 0 || !covering.matches) return nothing;
    return html`<p class="panel-offer">
      <span>There is a question to you.</span>
      <button type="button" class="link" @click=${() => this.close()}>
        Back to the conversation
      </button>
    </p>`;
  }

  /** A newer version never takes the place of what is being read. */
  #offer({ version: newest }) {
    const { version } = this.#shown;
    if (version >= newest) return nothing;
    return html`<p class="panel-offer">
      <span>There is a newer version.</span>
      <button type="button" class="link" @click=${() => this.#choose(newest)}>
        Show version ${newest}
      </button>
    </p>`;
  }

  #trouble(words) {
    return html`<div class="panel-trouble" role="alert">
      <p>${words}</p>
      <button type="button" class="link" @click=${() => this.#retry()}>Try again</button>
    </div>`;
  }

  #retry() {
    const { artifact, artifactId, version } = this.#shown;
    if (artifact) this.#loadContent();
    else this.open(artifactId, version);
  }
}
