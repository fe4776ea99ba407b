// Cells of the JupyterLab or Notebook 7 around a page: their text, and another text in its place. Nothing runs.
import { findAll } from "./dom.js";

const CELL = /^Cell In\[(\d+)\]$/;

/** @type {(file: string | null | undefined) => number | null} of a cell that a session names; null for a file */
export function findCellNumber(file) {
  const found = CELL.exec(file ?? "");
  return found && Number(found[1]);
}

/** @type {Write<string>} A text without the empty lines at its ends: IPython drops the first ones. */
export function trimLines(text) {
  return text.replace(/^(?:[ \t]*\n)+/, "").trimEnd();
}

/** @param {Element | null} node */
export function hasCells(node) {
  return Boolean(node?.closest(".jp-NotebookPanel"));
}

/** @type {(editor: Element | null) => string | null} the text in an editor; null if it shows only a part of it */
function readText(editor) {
  if (!editor || editor.querySelector(".cm-gap")) return null;
  return [...editor.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n");
}

/** The cell that ran as `In[number]`. */
export class NotebookCell {
  /**
   * A notebook that was loaded again while the cell ran does not know its number; then it is the only one without a number
   * that has one of these texts.
   * @param {Element | null} node in the notebook
   * @param {number | null} number null for a file
   * @param {string[]} [texts]
   */
  constructor(node, number, texts = []) {
    this.texts = texts.map(trimLines);
    const panel = number === null ? null : node?.closest(".jp-NotebookPanel");
    const cells = findAll(panel, ".jp-CodeCell").map((cell) => ({
      prompt: cell.querySelector(".jp-InputArea-prompt")?.textContent?.trim() ?? "",
      editor: /** @type {HTMLElement | null} */ (cell.querySelector(".cm-content")),
    }));
    const numbered = cells.find(({ prompt }) => prompt === `[${number}]:`);
    const alike = cells.filter(({ prompt, editor }) => !/\d/.test(prompt) && this.texts.includes(trimLines(readText(editor) ?? "")));
    /** null outside of such a notebook, while the cell runs, and after it ran again */
    this.editor = (numbered ?? (alike.length === 1 ? alike[0] : null))?.editor ?? null;
  }

  /** Its text; null if it is not there, or its editor shows only a part of it. */
  get text() {
    return readText(this.editor);
  }

  /** @param {string} text is put into it as if it was pasted: the editor's own undo brings the old one back */
  write(text) {
    const { editor } = this;
    if (!editor) return;
    editor.focus({ preventScroll: true });
    document.getSelection()?.selectAllChildren(editor);
    document.dispatchEvent(new Event("selectionchange")); // the editor reads it now, not when it is idle
    const data = new DataTransfer();
    data.setData("text/plain", text);
    editor.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }

  /** @param {number} line from 1, which is selected; false if it is not there */
  selectLine(line) {
    const found = this.editor?.querySelectorAll(".cm-line")[line - 1];
    if (!found) return false;
    found.scrollIntoView({ block: "center" });
    this.editor?.focus({ preventScroll: true });
    document.getSelection()?.selectAllChildren(found);
    return true;
  }
}
