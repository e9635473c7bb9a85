/** Where files come from: dropped anywhere on the page, pasted, or picked. */

const NO_FOLDERS = 'Folders cannot be attached; drop the files in them.';

export class FileIntake {
  #veil;
  #handlers;
  #depth = 0;

  /**
   * @param {HTMLElement} veil Shown while files are dragged over the page.
   * @param {Object} handlers
   * @param {(files: File[]) => void} handlers.onFiles
   * @param {(text: string) => void} handlers.onTrouble
   */
  constructor(veil, handlers) {
    this.#veil = veil;
    this.#handlers = handlers;
    addEventListener('dragenter', (event) => this.#drag(event, 1));
    addEventListener('dragleave', (event) => this.#drag(event, -1));
    addEventListener('dragover', (event) => {
      if (!hasFiles(event)) return;
      // Without this the browser would leave the page for the file.
      event.preventDefault();
      event.dataTransfer.dropEffect = 'copy';
    });
    addEventListener('drop', (event) => this.#drop(event));
    addEventListener('paste', (event) => this.#paste(event));
  }

  /** Every element that is entered is one that is left. */
  #drag(event, step) {
    if (!hasFiles(event)) return;
    this.#depth = Math.max(0, this.#depth + step);
    this.#veil.hidden = this.#depth === 0;
  }

  #drop(event) {
    if (!hasFiles(event)) return;
    event.preventDefault();
    this.#depth = 0;
    this.#veil.hidden = true;
    const items = [...event.dataTransfer.items].filter(({ kind }) => kind === 'file');
    const isFolder = (item) => item.webkitGetAsEntry?.()?.isDirectory === true;
    if (items.some(isFolder)) this.#handlers.onTrouble(NO_FOLDERS);
    this.#give(items.filter((item) => !isFolder(item)).map((item) => item.getAsFile()));
  }

  #paste(event) {
    const { files, types } = event.clipboardData;
    // A copied table comes as text and as a picture of it; the text is meant.
    const isRichText = types.includes('text/plain') && (types.includes('text/html') || types.includes('text/rtf'));
    if (files.length === 0 || isRichText) return;
    event.preventDefault();
    this.#give([...files]);
  }

  #give(files) {
    const there = files.filter(Boolean);
    if (there.length > 0) this.#handlers.onFiles(there);
  }
}

function hasFiles({ dataTransfer }) {
  return dataTransfer?.types.includes('Files') ?? false;
}
