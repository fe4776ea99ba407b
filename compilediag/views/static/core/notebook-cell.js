// Cells of the JupyterLab or Notebook 7 around a page: their text, and another text in its place. Nothing runs.

/**
 * The cell that ran as `In[number]`; null outside of such a notebook, while it runs, and after it ran again.
 * @param {Element | null} node in the notebook
 * @param {number} number
 * @returns {HTMLElement | null}
 */
function findCell(node, number) {
  const cells = [...(node?.closest(".jp-NotebookPanel")?.querySelectorAll(".jp-CodeCell") ?? [])];
  const wanted = `[${number}]:`;
  const found = cells.find((cell) => cell.querySelector(".jp-InputArea-prompt")?.textContent?.trim() === wanted);
  return /** @type {HTMLElement | null} */ (found ?? null);
}

/**
 * @param {HTMLElement | null} cell
 * @returns {HTMLElement | null}
 */
function findEditor(cell) {
  return cell?.querySelector(".cm-content") ?? null;
}

/**
 * True if the page is in a notebook whose cells it can read.
 * @param {Element | null} node
 */
export function hasCells(node) {
  return Boolean(node?.closest(".jp-NotebookPanel"));
}

/**
 * The text of a cell; null if it is not there, or its editor shows only a part of it.
 * @param {Element | null} node
 * @param {number} number
 */
export function readCell(node, number) {
  const editor = findEditor(findCell(node, number));
  if (!editor || editor.querySelector(".cm-gap")) return null;
  return [...editor.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n");
}

/**
 * Puts another text into a cell, as if it was pasted: the editor's own undo brings the old one back.
 * @param {Element | null} node
 * @param {number} number
 * @param {string} text
 */
export function writeCell(node, number, text) {
  const editor = findEditor(findCell(node, number));
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
  const cell = findCell(node, number);
  const found = findEditor(cell)?.querySelectorAll(".cm-line")[line - 1];
  if (!found) return false;
  found.scrollIntoView({ block: "center" });
  findEditor(cell)?.focus({ preventScroll: true });
  document.getSelection()?.selectAllChildren(found);
  return true;
}
