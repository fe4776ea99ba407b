// Cells of the JupyterLab or Notebook 7 around a page: their text, and another text in its place. Nothing runs.

const CELL = /^Cell In\[(\d+)\]$/;

/**
 * The number of a cell that a session names; null for a file.
 * @param {string | null | undefined} file
 */
export function findCellNumber(file) {
  const found = CELL.exec(file ?? "");
  return found && Number(found[1]);
}

/**
 * A text without the empty lines at its ends: IPython drops the first ones.
 * @param {string} text
 */
export function trimLines(text) {
  return text.replace(/^(?:[ \t]*\n)+/, "").trimEnd();
}

/** @param {Element | null} node */
export function hasCells(node) {
  return Boolean(node?.closest(".jp-NotebookPanel"));
}

/**
 * The editor of the cell that ran as `In[number]`; null outside of such a notebook, while it runs, and after it ran again.
 * A notebook that was loaded again while the cell ran does not know its number; then it is the only one without a number
 * that has one of these texts.
 * @param {Element | null} node in the notebook
 * @param {number} number
 * @param {string[]} [texts]
 * @returns {HTMLElement | null}
 */
function findEditor(node, number, texts = []) {
  const cells = [...(node?.closest(".jp-NotebookPanel")?.querySelectorAll(".jp-CodeCell") ?? [])].map((cell) => ({
    prompt: cell.querySelector(".jp-InputArea-prompt")?.textContent?.trim() ?? "",
    editor: /** @type {HTMLElement | null} */ (cell.querySelector(".cm-content")),
  }));
  const found = cells.find(({ prompt }) => prompt === `[${number}]:`);
  if (found) return found.editor;
  const wanted = texts.map(trimLines);
  const alike = cells.filter(({ prompt, editor }) => !/\d/.test(prompt) && wanted.includes(trimLines(readText(editor) ?? "")));
  return alike.length === 1 ? alike[0].editor : null;
}

/**
 * The text in an editor; null if it shows only a part of it.
 * @param {Element | null} editor
 */
function readText(editor) {
  if (!editor || editor.querySelector(".cm-gap")) return null;
  return [...editor.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n");
}

/**
 * The text of a cell; null if it is not there, or its editor shows only a part of it.
 * @param {Element | null} node
 * @param {number} number
 * @param {string[]} texts that it may have, if its number is not known
 */
export function readCell(node, number, texts) {
  return readText(findEditor(node, number, texts));
}

/**
 * Puts another text into a cell, as if it was pasted: the editor's own undo brings the old one back.
 * @param {Element | null} node
 * @param {number} number
 * @param {string} text
 * @param {string[]} texts that it may have, if its number is not known
 */
export function writeCell(node, number, text, texts) {
  const editor = findEditor(node, number, texts);
  if (!editor) return;
  editor.focus({ preventScroll: true });
  document.getSelection()?.selectAllChildren(editor);
  document.dispatchEvent(new Event("selectionchange")); // the editor reads it now, not when it is idle
  const data = new DataTransfer();
  data.setData("text/plain", text);
  editor.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}

/**
 * Selects a line of a cell; false if it is not there.
 * @param {Element | null} node
 * @param {number} number
 * @param {number} line from 1
 */
export function selectLine(node, number, line) {
  const editor = findEditor(node, number);
  const found = editor?.querySelectorAll(".cm-line")[line - 1];
  if (!found) return false;
  found.scrollIntoView({ block: "center" });
  editor.focus({ preventScroll: true });
  document.getSelection()?.selectAllChildren(found);
  return true;
}
