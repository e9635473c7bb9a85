/** Keeps the newest in view while the reader stays at the end, and only then. */

/** Within this distance from the end the reader counts as being there, in px. */
const NEAR_END_PX = 48;

export class ScrollKeeper {
  #scroller;
  #onChange;
  #lastTop = 0;

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} content What grows inside.
   * @param {(isAtEnd: boolean) => void} onChange
   */
  constructor(scroller, content, onChange) {
    this.#scroller = scroller;
    this.#onChange = onChange;
    this.isAtEnd = true;
    scroller.addEventListener('scroll', () => this.#read(), { passive: true });
    // Growth and folding, images and fonts: whatever changes the height.
    const observer = new ResizeObserver(() => this.keep());
    observer.observe(content);
    observer.observe(scroller);
  }

  /** Stay at the end if the reader is there. */
  keep() {
    if (this.isAtEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    else this.#read();
  }

  /** Go to the end. */
  goToEnd() {
    this.#setAtEnd(true);
    this.keep();
  }

  #read() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    // Content that grows below must not count as the reader's scrolling up.
    const movedUp = scrollTop < this.#lastTop - 1;
    this.#lastTop = scrollTop;
    if (isNear) this.#setAtEnd(true);
    else if (movedUp) this.#setAtEnd(false);
  }

  #setAtEnd(isAtEnd) {
    if (isAtEnd === this.isAtEnd) return;
    this.isAtEnd = isAtEnd;
    this.#onChange(isAtEnd);
  }
}
