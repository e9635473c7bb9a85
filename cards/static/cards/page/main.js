/** The page: joins the session shown, the list, the timeline, the queue and the composer. */

import { html, nothing, render } from '../vendor/lit-html/lit-html.js';
import { Announcer } from './announcer.js';
import { ArtifactPanel } from './artifacts/panel.js';
import { Attachments } from './attachments/attachments.js';
import { attachedOf, blockAgain, blockOf } from './attachments/blocks.js';
import { FileIntake } from './attachments/intake.js';
import { copyCode } from './code.js';
import { Composer } from './composer.js';
import { ConnectionChip } from './connection_chip.js';
import { Conversation } from './conversation.js';
import { draftOf, forgetDrafts, joined, keepDraft } from './drafts.js';
import { icon } from './icons.js';
import { Notices } from './notices.js';
import { drawPending } from './pending.js';
import { PromptDock } from './prompts/dock.js';
import { drawQueue } from './queue.js';
import { pushSession, replaceSession, sessionInAddress } from './route.js';
import { ScrollKeeper } from './scroll_keeper.js';
import { Sidebar } from './sidebar.js';
import { drawSignedOut, signInAddress } from './sign_in.js';
import { Timeline } from './timeline.js';
import { drawTopbar } from './topbar.js';
import { workOf } from './work.js';

const ANSWER_TOO_LATE = 'Your answer had no effect: the question was already answered or has expired.';

const DELETED = 'This conversation was deleted.';
const UNKNOWN = 'This conversation does not exist, or is not yours to see.';

const part = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.outbox = [];
    /** What was sent, for when it comes back. @type {Map<string, import('./attachments/blocks.js').Attached>} */
    this.sentFiles = new Map();
    this.announcer = new Announcer(part('announcer'));
    this.notices = new Notices(part('notices'));
    this.timeline = new Timeline(part('timeline'));
    this.scroll = new ScrollKeeper(part('scroller'), part('scroller').firstElementChild, () =>
      this.drawJump(),
    );
    this.sidebar = new Sidebar(part('sidebar'), part('backdrop'), (id) => this.goTo(id));
    const say = (text) => this.announcer.say(text);
    this.attachments = new Attachments({ onChange: () => this.showFiles(), say });
    this.composer = new Composer(part('composer'), this.attachments, {
      onSend: (text) => this.sendWithFiles(text),
      onStop: () => this.stop(),
      onFiles: (files) => this.attach(files),
      say,
    });
    this.intake = new FileIntake(part('drop-veil'), {
      onFiles: (files) => this.attach(files),
      onTrouble: (text) => this.notices.add(text),
    });
    this.panel = new ArtifactPanel(part('panel'), {
      beneath: part('stage'),
      say,
      onLeave: () => this.composer.focus(),
    });
    this.prompts = new PromptDock(part('prompts'), {
      onAnswer: (...answer) => this.conversation.answer(...answer),
      onTakeBack: (id) => this.conversation.takeBackAnswer(id),
      onLeave: () => this.composer.focus(),
      say,
      now: () => this.conversation.now(),
    });
    this.connectionChip = new ConnectionChip(part('connection'), () =>
      this.conversation.retryNow(),
    );
    part('sidebar').addEventListener('sessions-loaded', () => this.drawTopbar());
    this.listen();
    this.open(sessionInAddress());
    this.sidebar.refresh();
  }

  listen() {
    addEventListener('popstate', () => this.open(sessionInAddress()));
    addEventListener('online', () => this.conversation.retryNow());
    addEventListener('offline', () => this.showStatus());
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.conversation.retryNow();
    });
    document.addEventListener('click', (event) => this.handleClick(event));
    document.addEventListener('keydown', pressLikeButton);
    const keepWords = () => this.keepWords();
    addEventListener('pagehide', keepWords);
    part('sign-out')?.addEventListener('submit', () => {
      removeEventListener('pagehide', keepWords);
      forgetDrafts();
    });
  }

  /** Go to another session as a step of the browser's history. */
  goTo(sessionId) {
    if (sessionId === sessionInAddress()) return void this.composer.focus();
    pushSession(sessionId);
    this.open(sessionId);
  }

  /** Show a session; empty for a new one. */
  open(sessionId) {
    this.keepWords();
    this.conversation?.close();
    this.outbox = [];
    this.timeline.clear();
    this.notices.clear();
    this.prompts.clear();
    this.panel.clear();
    const conversation = new Conversation(sessionId, {
      onChange: (state, touched) => this.show(state, touched),
      onReset: () => this.timeline.clear(),
      onStatus: () => conversation === this.conversation && this.showStatus(),
      onOutbox: (entries) => this.showOutbox(entries),
      onStopping: () => this.drawAround(),
      onAnswers: () => this.showAnswers(),
      onAnswerTooLate: () => this.notices.add(ANSWER_TOO_LATE),
      onLost: () => this.showLost(),
    });
    this.conversation = conversation;
    this.composer.switchTo(sessionId);
    this.attachments.switchTo(sessionId, () => conversation.keepSession());
    this.sidebar.select(sessionId);
    this.scroll.goToEnd();
    conversation.open();
    this.drawAround();
    this.composer.focus();
  }

  /** @param {string} text @param {Object[]} [blocks] The files that go with it. */
  send(text, blocks = []) {
    this.scroll.goToEnd();
    this.conversation.send(text, blocks);
    this.adoptSession();
  }

  sendWithFiles(text) {
    const files = this.attachments.take();
    for (const file of files) this.sentFiles.set(file.artifactId, file);
    this.send(text, files.map(blockOf));
  }

  attach(files) {
    if (!this.isHeard) return void this.notices.add('Files can be attached once you are connected.');
    this.attachments.add(files);
    this.composer.focus();
  }

  showFiles() {
    // The first call is their own, before there is a field.
    this.composer?.showFiles();
    if (this.conversation) this.adoptSession();
  }

  /** What there is to stop, and what waits for it. @returns {import('./work.js').Work} */
  get work() {
    return workOf(this.conversation.state, this.outbox, this.conversation.stopping);
  }

  /** Whether what is asked for reaches the server, now or in a while. */
  get isHeard() {
    return !['signed_out', 'closed'].includes(this.conversation.status.name);
  }

  /** Stop what runs or is about to. @param {boolean} [clearQueue] What waits as well. */
  stop(clearQueue = false) {
    const { isBusy, turnCardId } = this.work;
    // In an open drawer Escape means the drawer.
    if (!isBusy || !this.isHeard || this.sidebar.isOpen) return;
    this.conversation.interrupt({ turnCardId, clearQueue });
    this.announcer.say('Stopping.');
  }

  /** Say a turn's words once more, as a new message. */
  tryAgain(button, cardId) {
    button.disabled = true;
    const { text, content = [] } = this.conversation.state.cards.get(cardId).payload.input;
    this.send(text, content.map(blockAgain).filter(Boolean));
  }

  /** What was not sent stays in the field for when the session is shown again. */
  keepWords() {
    if (!this.conversation) return;
    const unsent = this.outbox.filter((entry) => entry.state !== 'sent');
    this.composer.keep(unsent.map((entry) => entry.text));
    this.attachments.keep(unsent.flatMap((entry) => this.filesOf(entry)));
  }

  show(state, touched) {
    this.timeline.show(state, touched, !this.conversation.isCaughtUp);
    this.panel.follow(state, touched);
    this.notices.show(state, (error) => this.outbox.some((entry) => entry.error === error));
    if (this.conversation.isCaughtUp && touched.size > 0) {
      this.announcer.follow(state, touched);
      if (hasTurnNews(state, touched)) this.sidebar.refresh();
    }
    this.adoptSession();
    this.drawAround();
  }

  showStatus() {
    const { status } = this.conversation;
    const isSignedOut = status.name === 'signed_out';
    document.documentElement.dataset.connection = status.name;
    this.connectionChip.show(status);
    drawSignedOut(part('signed-out'), isSignedOut);
    if (isSignedOut) this.sidebar.refresh();
    this.drawAround();
  }

  showOutbox(entries) {
    this.outbox = entries;
    const crowdedOut = entries.filter((entry) => entry.error?.type === 'overloaded');
    if (crowdedOut.length > 0) return void this.takeBack(crowdedOut);
    this.adoptSession();
    this.drawAround();
  }

  showAnswers() {
    this.timeline.showAnswers(this.conversation.answers);
    this.drawAround();
  }

  /** What the server has no room for now is the user's again; a notice tells why. */
  takeBack(entries) {
    this.composer.giveBack(joined(entries.map((entry) => entry.text)));
    this.attachments.giveBack(entries.flatMap((entry) => this.filesOf(entry)));
    for (const { eventId } of entries) this.conversation.discardMessage(eventId);
  }

  /** The files of a message that was not sent. */
  filesOf({ frame }) {
    const files = frame.content.filter(({ source }) => source?.type === 'artifact');
    return files.map(
      ({ source, name = source.artifact_id }) =>
        this.sentFiles.get(source.artifact_id) ??
        attachedOf({ artifact_id: source.artifact_id, name, mime_type: '', size_bytes: 0 }),
    );
  }

  /** Nothing can be said to a session that is not there: begin a new one. */
  showLost() {
    const { sessionId, state } = this.conversation;
    const isDeleted = state.errors.some(({ error }) => error.code === 'SESSION_DELETED');
    replaceSession('');
    this.open('');
    // Files went with their session; words may still be said.
    this.composer.giveBack(draftOf(sessionId));
    keepDraft(sessionId, '');
    this.attachments.forget(sessionId);
    this.sidebar.forget(sessionId);
    this.notices.add(isDeleted ? DELETED : UNKNOWN);
  }

  /** A new conversation gets its address with its first message. */
  adoptSession() {
    const { sessionId, state } = this.conversation;
    const hasFiles = this.attachments.entries.length > 0;
    const hasBegun = hasFiles || this.outbox.length > 0 || state.cards.size > 0;
    if (!hasBegun || !sessionId || sessionInAddress()) return;
    replaceSession(sessionId);
    this.composer.rename(sessionId);
    this.attachments.rename(sessionId);
    this.sidebar.select(sessionId);
    this.sidebar.refresh();
  }

  drawAround() {
    const { work } = this;
    const isOpen = this.conversation.status.name === 'open';
    if (this.conversation.isCaughtUp) this.drawPrompts(isOpen);
    this.drawTopbar();
    this.drawWelcome();
    this.composer.show({ ...work, isBusy: work.isBusy && this.isHeard });
    drawQueue(part('queue'), { work, isOpen, onClear: () => this.stop(true) });
    drawPending(part('pending'), {
      entries: work.leading,
      isOpen,
      onRetry: (id) => this.conversation.retryMessage(id),
      onDiscard: (id) => this.conversation.discardMessage(id),
    });
  }

  drawPrompts(isOpen) {
    const { state, answers } = this.conversation;
    this.prompts.show(state, answers, isOpen);
    this.panel.noteQuestions(this.prompts.count);
  }

  drawTopbar() {
    const { state, sessionId } = this.conversation;
    const title = state.title || this.sidebar.titleOf(sessionId) || firstWords(state);
    const mark = this.prompts.count > 0 ? `(${this.prompts.count}) ` : '';
    document.title = mark + (title ? `${title} · Cardwire` : 'Cardwire');
    drawTopbar(part('topbar'), {
      title: title || 'New conversation',
      model: state.model,
      onMenu: () => this.sidebar.toggle(),
    });
  }

  drawWelcome() {
    const { state, isCaughtUp } = this.conversation;
    const isEmpty = isCaughtUp && state.cards.size === 0 && this.outbox.length === 0;
    const welcome = html`<div class="welcome">
      <span class="brand-mark" aria-hidden="true"></span>
      <p>What would you like to work on?</p>
    </div>`;
    render(isEmpty ? welcome : nothing, part('welcome'));
  }

  drawJump() {
    const button = html`<button type="button" class="jump-button" @click=${() => this.scroll.goToEnd()}>
      ${icon('down')}<span>Latest</span>
    </button>`;
    render(this.scroll.isAtEnd ? nothing : button, part('jump'));
  }

  handleClick(event) {
    const signIn = event.target.closest('a[data-sign-in]');
    // The template does not know which session is shown by now.
    if (signIn) signIn.href = signInAddress();
    const button = event.target.closest('[data-action]');
    if (!button) return;
    const { action, target, version } = button.dataset;
    if (action === 'copy') copyCode(button);
    else if (action === 'show-card') this.timeline.reveal(target);
    else if (action === 'try-again') this.tryAgain(button, target);
    else if (action === 'show-artifact') this.panel.open(target, Number(version) || 0);
  }
}

/** A link that is a button takes the keys of one. */
function pressLikeButton(event) {
  const isPress = event.key === 'Enter' || event.key === ' ';
  if (!isPress || !event.target.matches?.('a[role="button"][data-action]')) return;
  event.preventDefault();
  event.target.click();
}

function hasTurnNews(state, touched) {
  return [...touched].some((cardId) => {
    const card = state.cards.get(cardId);
    return card.cardKind === 'turn' && (card.events === 1 || card.status !== 'open');
  });
}

/** The beginning of the first message is the title until there is another (E29). */
function firstWords(state) {
  for (const card of state.cards.values()) {
    if (card.cardKind === 'turn') return card.payload.input?.text?.slice(0, 80) ?? '';
  }
  return '';
}

new Page();
