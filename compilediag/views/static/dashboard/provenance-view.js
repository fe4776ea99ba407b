// What each line became: the graph before autograd, the graph after it and the generated code side by side.
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatPlace, lookUp } from "../core/format.js";
import { inflate } from "../core/page-data.js";
import { CodeHighlighter } from "../core/code-highlight.js";
import { findKernelLines, linkLines } from "./provenance-links.js";
/** @import { Store } from "../core/store.js" */
/** @import { ArtifactName, Pane, PaneLinks, TracedGraph } from "./provenance-links.js" */

const MOST_CODE_LINES = 6000; // of one text
const FRAME = /File "([^"]+)", line (\d+), in (\S+)\n\s*([^\n]*)/;
/** @type {[Pane, string][]} */
const PANES = [["pre", "from Dynamo"], ["post", "after autograd"], ["code", "generated code"]];
const HELP = "Point at a line, or step to it with Tab, to see the lines that it came from and became.";
const NO_NODES = "torch did not trace the nodes of this graph; lines of generated code show the user's lines.";

/**
 * The user's lines that a kernel computes, from torch's texts of stacks.
 * @param {string[]} stacks
 */
function findUserLines(stacks) {
  const found = stacks.map((stack) => FRAME.exec(stack)).filter((match) => match !== null);
  return [...new Set(found.map(([, file, line, name, code]) => `${formatPlace(file, line)} in ${name}: ${code.trim()}`))];
}

export class ProvenanceView {
  /**
   * @param {Store} store
   * @param {() => void} onClose leads back to the tables
   */
  constructor(store, onClose) {
    this.store = store;
    /** @type {Record<string, string[]>} kernel -> stacks */
    this.kernels = {};
    /** @type {Record<Pane, PaneLinks>} */
    this.links = { pre: new Map(), post: new Map(), code: new Map() };
    /** @type {Map<number, string>} line of the code -> its kernel */
    this.codeKernels = new Map();
    /** @type {Record<Pane, HTMLElement[]>} */
    this.lines = { pre: [], post: [], code: [] };
    this.title = make("h2", "");
    this.note = make("p", "cdiag-dim");
    this.user = make("p", "cdiag-provenance-user");
    this.picks = make("div", "cdiag-chips");
    this.panes = make("div", "cdiag-panes");
    this.back = makeButton("cdiag-link cdiag-up", "‹ back", onClose);
    const head = make("div", "cdiag-page-head", this.back, this.title);
    this.node = make("div", "cdiag-provenance", head, this.picks, this.note, this.user, this.panes);
    this.node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation(); // the detail that it covers stays open
      onClose();
    });
    setShown(this.node, false);
  }

  /**
   * Shows the graphs of one compile.
   * @param {string} title
   * @param {TracedGraph[]} graphs
   */
  async open(title, graphs) {
    setText(this.title, `From graph to code: ${title}`);
    /** @param {number} i */
    const pick = (i) => {
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === i)));
      return this.show(graphs[i]);
    };
    const buttons = graphs.map((_, i) => {
      return makeButton("cdiag-compile", `graph ${i + 1} of ${graphs.length}`, () => void pick(i));
    });
    this.picks.replaceChildren(...(graphs.length > 1 ? buttons : []));
    setShown(this.node, true);
    await pick(0);
    this.back.focus({ preventScroll: true });
  }

  close() {
    setShown(this.node, false);
    this.panes.replaceChildren();
  }

  /** @param {ArtifactName | null} artifact */
  async readText(artifact) {
    const stored = artifact && this.store.texts.get(artifact.id);
    if (!stored?.z) return null;
    try {
      return await inflate(stored);
    } catch {
      return null; // a damaged file; the artifact's own section says so
    }
  }

  /** @param {TracedGraph} graph */
  async show(graph) {
    const artifacts = [graph.mapping, graph.traces, graph.pre, graph.post, graph.code];
    const [mapping, traces, pre, post, code] = await Promise.all(artifacts.map((artifact) => this.readText(artifact)));
    const [nodes, bodies] = [readJson(mapping), { pre, post, code }];
    this.kernels = readJson(traces);
    const texts = { pre: splitLines(pre), post: splitLines(post), code: splitLines(code) };
    this.links = linkLines(texts, nodes);
    this.codeKernels.clear();
    findKernelLines(texts.code, Object.keys(this.kernels)).forEach((lines, kernel) => {
      lines.forEach((line) => this.codeKernels.set(line, kernel));
    });
    const known = Object.keys(nodes.postToPre ?? {}).length + Object.keys(nodes.cppCodeToPost ?? {}).length;
    setText(this.note, known ? HELP : NO_NODES);
    setText(this.user, "");
    this.panes.replaceChildren(...PANES.map(([pane, label]) => this.makePane(pane, label, bodies[pane], texts[pane])));
  }

  /**
   * @param {Pane} name
   * @param {string} label
   * @param {string | null} body
   * @param {string[]} lines
   */
  makePane(name, label, body, lines) {
    const highlighter = new CodeHighlighter();
    this.lines[name] = lines.map((line, i) => this.makeLine(name, i, highlighter.colorLine(line)));
    const absent = body === null ? make("p", "cdiag-dim", "not in this page") : null;
    const box = make("div", "cdiag-pane-lines", absent, ...(body === null ? [] : this.lines[name]));
    box.dataset.pane = name;
    return make("section", "cdiag-pane", make("h3", "", label), box);
  }

  /**
   * @param {Pane} pane
   * @param {number} number
   * @param {(string | HTMLElement)[]} pieces
   */
  makeLine(pane, number, pieces) {
    const isLinked = this.links[pane].has(number) || (pane === "code" && this.codeKernels.has(number));
    const node = make("div", "cdiag-code-line", ...pieces);
    if (!isLinked) return node;
    node.classList.add("is-linked");
    node.tabIndex = 0;
    node.addEventListener("pointerenter", () => this.light(pane, number, false));
    node.addEventListener("focus", () => this.light(pane, number, true));
    node.addEventListener("click", () => this.light(pane, number, true));
    return node;
  }

  /**
   * Lights a line and those that belong to it; `scrolls` brings the last of them into view.
   * @param {Pane} pane
   * @param {number} number
   * @param {boolean} scrolls
   */
  light(pane, number, scrolls) {
    this.node.querySelectorAll(".is-lit").forEach((lit) => lit.classList.remove("is-lit", "is-here"));
    this.lines[pane][number].classList.add("is-lit", "is-here");
    const found = this.links[pane].get(number);
    const lit = new Set(pane === "code" ? [number] : []);
    for (const [other] of PANES) {
      const numbers = [...(found?.[other] ?? [])].sort((a, b) => a - b);
      const nodes = numbers.map((i) => this.lines[other][i]);
      nodes.forEach((node) => node.classList.add("is-lit"));
      if (other === "code") numbers.forEach((i) => lit.add(i));
      if (scrolls && other !== pane && nodes.length) scrollPane(nodes[nodes.length - 1]);
    }
    const kernels = new Set([...lit].map((i) => this.codeKernels.get(i)));
    const stacks = [...kernels].flatMap((kernel) => (kernel === undefined ? [] : lookUp(this.kernels, kernel) ?? []));
    setText(this.user, findUserLines(stacks.filter((stack) => typeof stack === "string")).join("   ·   "));
  }
}

/**
 * Scrolls the pane of a line, not the page.
 * @param {HTMLElement} node
 */
function scrollPane(node) {
  const pane = node.parentElement;
  if (pane) pane.scrollTop = node.offsetTop - pane.clientHeight / 3;
}

/** @param {string | null} text */
function splitLines(text) {
  return (text ?? "").split("\n").slice(0, MOST_CODE_LINES);
}

/**
 * The object that a text holds; an empty one if it holds none.
 * @param {string | null} text
 * @returns {Record<string, any>}
 */
function readJson(text) {
  try {
    const value = JSON.parse(text ?? "{}");
    return value !== null && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}
