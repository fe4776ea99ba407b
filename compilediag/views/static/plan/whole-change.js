// All changes of the plan in the user's own cells or file: read, copied, put in place, saved as a patch.
import { Copy, Icon } from "../core/blocks.js";
import { Code, Diff } from "../core/code.js";
import { saveFile } from "../core/dom.js";
import { formatAmount } from "../core/format.js";
import { hasCells, NotebookCell, trimLines } from "../core/notebook-cell.js";
import { html } from "../core/view.js";
import { useEffect, useState } from "../vendor/hooks.js";

const FIRST_LOOK_MS = 50; // a host may put the page in place later,
const LOOKS_MS = 1500; // and gives a cell its number when it has heard that the cell is done, which may be after us
const DRAWN_MS = 50; // after which an editor has drawn its new text

/**
 * What the notebook has of the cells that the plan changes, as a text that differs when that does; and a function that
 * looks again, because a reader may have edited a cell.
 * @type {(node: Card["node"], plan: Plan | null) => [cells: string, look: () => void]}
 */
export function useCells(node, plan) {
  const read = () => [hasCells(node.current), ...(plan?.sources ?? []).map((source) => findCellState(node.current, source))].join();
  const [cells, setCells] = useState(read);
  const look = () => setCells(read());
  useEffect(() => {
    if (!plan?.sources.some(({ cell }) => cell !== null)) return;
    const timers = [setTimeout(look, FIRST_LOOK_MS), setInterval(look, LOOKS_MS)];
    return () => timers.forEach(clearInterval);
  }, [plan]);
  return [cells, look];
}

/** @param {{card: Card, children: ComponentChild}} props `children`: beside its title */
export function WholeChange({ card, children }) {
  const { sources, patch, code } = card.plan;
  const [isChosen, choose] = useState(false);
  if (!sources.length && !code) return null;
  const isOpen = isChosen || card.isPrinting;
  const cells = sources.filter(({ cell, after }) => cell !== null && after !== null);
  const areCells = cells.length > 0 && cells.length === sources.length;
  const text = cells.length === 1 && areCells ? cells[0].after : patch ?? code;
  const what = !sources.length ? "the code of all steps" : cells.length === 1 && areCells ? "the changed cell" : "the patch";
  return html`<div class="cdiag-whole">
    <div class="cdiag-whole-foot">
      <button type="button" class="cdiag-whole-title" aria-expanded=${isOpen} onClick=${() => choose(!isChosen)}>
        <${Icon} name="open" /><b>The whole change</b> <span class="cdiag-whole-size"><${Size} sources=${sources} /></span>
      </button>
      ${children}
      <span class="cdiag-whole-actions">
        <${Copy} text=${text ?? ""} hint=${`copy ${what}`} />
        ${areCells && hasCells(card.node.current) && html`<${Replace} card=${card} cells=${cells} />`}
        ${sources.length > 0 && !areCells && patch && html`<button type="button" class="cdiag-button" onClick=${() => saveFile("compilediag.patch", "text/x-diff", patch)}>Save patch</button>`}
      </span>
    </div>
    ${isOpen && (sources.length ? sources.map((source) => html`<div key=${source.place} class="cdiag-whole-source">
      ${sources.length > 1 && html`<p class="cdiag-box-title"><code>${source.place}</code></p>`}
      <${Diff} lines=${source.lines} label=${`the change in ${source.place}`} />
    </div>`) : html`<${Code} code=${code} hint="copy the code of all steps" />`)}
  </div>`;
}

/** @param {{sources: ChangedSource[]}} props */
function Size({ sources }) {
  /** @param {string} mark */
  const count = (mark) => sources.reduce((sum, { lines }) => sum + lines.filter((line) => line[1] === mark).length, 0);
  const [added, removed] = [count("+"), count("-")];
  if (!sources.length) return null;
  const places = sources.map(({ place }) => place).join(", ");
  return html`${added > 0 && html`<b class="is-added">+${added}</b>`} ${removed > 0 && html`<b class="is-removed">−${removed}</b>`} ${formatAmount(added + removed, "line").replace(/^\S+ /, "")} in ${places}`;
}

/** @type {Component<{card: Card, cells: ChangedSource[]}>} Puts the changed text into each cell, runs nothing, and offers to undo it. */
function Replace({ card: { node: { current: node }, store, look }, cells }) {
  const states = cells.map((source) => findCellState(node, source));
  const name = cells.length === 1 ? `cell ${cells[0].place}` : `${cells.length} cells`;
  /** @param {"before" | "after"} which */
  const write = (which) => {
    const from = which === "after" ? "before" : "after";
    const isAsDrawn = cells.every((source) => findCellState(node, source) === from);
    for (const source of isAsDrawn ? cells : []) findCell(node, source).write(source[which] ?? "");
    setTimeout(look, DRAWN_MS);
  };
  if (states.every((state) => state === "after")) {
    return html`<button type="button" class="cdiag-button cdiag-replace" onClick=${() => write("before")}>Replaced · Undo</button>`;
  }
  const isSame = states.every((state) => state === "before");
  // A cell that runs may compile more, and then its change is another one.
  const isWaiting = store.isLive() && !store.canSearch;
  const why = isSame || isWaiting ? "" : `${explain(states)}; copy the lines instead`;
  return html`${why && html`<span class="cdiag-replace-why">${why}</span>`}
    <button type="button" class="cdiag-button cdiag-replace" disabled=${!isSame || isWaiting} data-hint=${isWaiting ? "when the kernel is idle" : "puts the changed text into the cell; nothing runs"} onClick=${() => write("after")}>Replace ${name}</button>`;
}

/** @type {Write<string[]>} Why the changed text cannot be put into cells of these states. */
function explain(states) {
  // A page whose cell ran again does not know its number, nor does one that was loaded again while a cell ran that was
  // edited since.
  if (states.includes("gone")) return states.length === 1 ? "The notebook has no cell of this number" : "The notebook lacks one of these cells";
  return states.length === 1 ? "The cell has changed since" : "The cells have changed since";
}

/** @param {Element | null} node @param {ChangedSource} source */
function findCell(node, { cell, before, after }) {
  return new NotebookCell(node, cell, [before ?? "", after ?? ""]);
}

/**
 * What the notebook has in the cell now: the text before the change, the one after it, another one, or no such cell.
 * @type {(node: Element | null, source: ChangedSource) => string}
 */
function findCellState(node, source) {
  const { text, texts } = findCell(node, source);
  return text === null ? "gone" : ["before", "after"][texts.indexOf(trimLines(text))] ?? "other";
}
