/** Named one-shot timers; setting a name again replaces its timer. */
export class Deadlines {
  #timers;
  #handles = new Map();

  /** @param {{setTimeout: Function, clearTimeout: Function}} timers */
  constructor(timers) {
    this.#timers = timers;
  }

  /**
   * @param {string} name
   * @param {number} delayMs
   * @param {() => void} action
   */
  set(name, delayMs, action) {
    this.clear(name);
    const fire = () => {
      this.#handles.delete(name);
      action();
    };
    this.#handles.set(name, this.#timers.setTimeout(fire, delayMs));
  }

  /** Tell whether a name's timer is running. */
  has(name) {
    return this.#handles.has(name);
  }

  /** Stop a name's timer, if it runs. */
  clear(name) {
    if (!this.#handles.has(name)) return;
    this.#timers.clearTimeout(this.#handles.get(name));
    this.#handles.delete(name);
  }

  /** Stop every timer. */
  clearAll() {
    for (const name of [...this.#handles.keys()]) this.clear(name);
  }
}
