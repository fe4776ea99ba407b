// Puts code into a new cell of the notebook around a page, where the notebook has a way.

const INSERT = '[data-command="notebook:insert-cell-below"], [data-jp-item-name="insert"] jp-button';
const EDITOR = ".jp-Cell.jp-mod-active .cm-content";
const PATIENCE_MS = 3000;

/**
 * The button of JupyterLab and Notebook 7 that inserts a cell below the active one; null elsewhere.
 * @param {Element} node in the notebook
 * @returns {HTMLElement | null}
 */
function findInsertButton(node) {
  return node.closest(".jp-NotebookPanel")?.querySelector(INSERT) ?? null;
}

/**
 * The notebook of Notebook 6 and nbclassic, whose page has it as a global object; null elsewhere.
 * @returns {any}
 */
function findClassicNotebook() {
  return /** @type {any} */ (globalThis).Jupyter?.notebook ?? null;
}

/**
 * True if a new cell can be inserted.
 * @param {Element} node
 */
export function canInsertCell(node) {
  return findInsertButton(node) !== null || findClassicNotebook() !== null;
}

/**
 * Inserts a cell with this code below the cell of a page; true if the notebook did.
 * @param {Element} node
 * @param {string} code
 */
export async function insertCell(node, code) {
  const classic = findClassicNotebook();
  if (classic) {
    const cells = /** @type {any[]} */ (classic.get_cells());
    const own = cells.findIndex((cell) => cell.element[0].contains(node));
    classic.insert_cell_below("code", own < 0 ? undefined : own).set_text(code);
    return true;
  }
  const cell = node.closest(".jp-Cell");
  press(cell); // makes it the active cell
  press(findInsertButton(node));
  const editor = await waitForEditor(cell);
  if (!editor) return false;
  editor.focus();
  return document.execCommand("insertText", false, code); // the editor takes it for typed text, so it can be undone
}

/**
 * A whole click: JupyterLab acts on its first or its last part.
 * @param {Element | null} node
 */
function press(node) {
  for (const type of ["mousedown", "mouseup", "click"]) {
    node?.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true, button: 0 }));
  }
}

/**
 * The editor of a new, empty cell.
 * @param {Element | null} before the cell of the page
 * @returns {Promise<HTMLElement | null>}
 */
async function waitForEditor(before) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; ) {
    /** @type {HTMLElement | null} */
    const editor = document.querySelector(EDITOR);
    if (editor && editor.closest(".jp-Cell") !== before && editor.textContent?.trim() === "") return editor;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  return null;
}
