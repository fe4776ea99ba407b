// What became of each line: the graph before autograd, the graph after it and the generated code side by side.
import { inflate } from "./artifact-view.js";
import { make, makeButton, setShown, setText } from "../core/dom.js";
import { formatPlace } from "../core/format.js";
import { Highlighter } from "./code-highlight.js";

const MAPPING = "inductor_provenance_tracking_node_mappings";
const TRACES = "inductor_provenance_tracking_kernel_stack_traces";
const OUTPUT_CODE = "inductor_output_code";
const POST = ["inductor_post_grad_graph", "after_post_grad_graph"];
const PRE = ["before_pre_grad_graph", "inductor_pre_grad_graph", "dynamo_output_graph"];
const MOST_CODE_LINES = 6000; // of one text
const NODE = /^\s*%?([A-Za-z_]\w*)\s*(?::[^=]*)?=(?!=)/;
const HANDLE = /\[Provenance debug handles\]\s*(.*)$/;
const FRAME = /File "([^"]+)", line (\d+), in (\S+)\n\s*([^\n]*)/;

/** The row of one of `names` that was written last before `position`, else the first after it. */
function nearest(rows, names, position) {
  for (const name of names) {
    const found = rows.map((row, i) => ({ row, i })).filter(({ row }) => row.name === name);
    const before = found.filter(({ i }) => i < position).pop();
    if (before ?? found[0]) return (before ?? found[0]).row;
  }
  return null;
}

/** The graphs of a compile that can be traced: [{mapping, traces, pre, post, code}], rows {id, name} in order of time. */
export function traced(rows) {
  const mappings = rows.map((row, i) => ({ row, i })).filter(({ row }) => row.name === MAPPING);
  return mappings.map(({ row, i }) => {
    const told = rows[i + 1]?.name === TRACES ? rows[i + 1] : null;
    return { mapping: row, traces: told, pre: nearest(rows, PRE, i), post: nearest(rows, POST, i), code: nearest(rows, [OUTPUT_CODE], i) };
  }).filter(({ code }) => code !== null);
}

/** Node of a graph -> the lines that make it. */
export function linesOfNodes(lines) {
  const found = new Map();
  lines.forEach((line, i) => {
    const name = NODE.exec(line)?.[1];
    if (name) found.set(name, [...(found.get(name) ?? []), i]);
  });
  return found;
}

/** Kernel, as in "cpp_fused_add_0:2" -> its lines in the code: where it is made, and the call that has its handle. */
export function linesOfKernels(lines, kernels) {
  const found = new Map(kernels.map((kernel) => [kernel, []]));
  const handled = new Set();
  lines.forEach((line, i) => {
    for (const kernel of HANDLE.exec(line)?.[1].split(/[\s,]+/) ?? []) {
      const name = baseOf(kernel);
      const call = lines.findIndex((other, at) => at > i && other.includes(name));
      if (!found.has(kernel)) continue;
      found.get(kernel).push(i, ...(call < 0 ? [] : [call]));
      handled.add(kernel);
    }
  });
  for (const kernel of kernels) {
    const name = baseOf(kernel);
    const made = linesOfSource(lines, name);
    found.get(kernel).push(...made);
    if (handled.has(kernel)) continue;
    lines.forEach((line, i) => line.includes(`${name}(`) && found.get(kernel).push(i));
  }
  return found;
}

function baseOf(kernel) {
  return kernel.replace(/:\d+$/, "");
}

/** The lines from `name = async_compile...` to the end of the kernel's source. */
function linesOfSource(lines, name) {
  const begin = lines.findIndex((line) => line.startsWith(`${name} = async_compile`));
  if (begin < 0) return [];
  const length = lines.slice(begin + 1).findIndex((line) => /^(?:'''|""")/.test(line));
  return Array.from({ length: length < 0 ? 1 : length + 2 }, (_, i) => begin + i);
}

/** Pane -> line -> the lines of all panes that belong to it. Panes are "pre", "post" and "code". */
export function partners(texts, mapping) {
  const [pre, post] = [linesOfNodes(texts.pre), linesOfNodes(texts.post)];
  const kernels = linesOfKernels(texts.code, Object.keys(mapping.cppCodeToPost ?? {}));
  const links = { pre: new Map(), post: new Map(), code: new Map() };
  const link = (pane, lines, other, others) => lines.forEach((line) => {
    if (!links[pane].has(line)) links[pane].set(line, { pre: new Set(), post: new Set(), code: new Set() });
    others.forEach((each) => links[pane].get(line)[other].add(each));
  });
  const join = (a, ofA, b, ofB) => {
    link(a, ofA, b, ofB);
    link(b, ofB, a, ofA);
  };
  for (const [kernel, nodes] of Object.entries(mapping.cppCodeToPost ?? {})) {
    const inCode = kernels.get(kernel);
    for (const node of nodes) {
      join("code", inCode, "post", post.get(node) ?? []);
      for (const before of mapping.postToPre?.[node] ?? []) join("code", inCode, "pre", pre.get(before) ?? []);
    }
    link("code", inCode, "code", inCode);
  }
  for (const [node, before] of Object.entries(mapping.postToPre ?? {})) {
    for (const name of before) join("post", post.get(node) ?? [], "pre", pre.get(name) ?? []);
  }
  return links;
}

/** The user's lines that a kernel computes, from torch's texts of stacks. */
function userLines(stacks) {
  const told = stacks.map((stack) => FRAME.exec(stack)).filter(Boolean);
  return [...new Set(told.map(([, file, line, name, code]) => `${formatPlace(file, line)} in ${name}: ${code.trim()}`))];
}

const PANES = [["pre", "as Dynamo made it"], ["post", "after autograd"], ["code", "generated code"]];

export class ProvenanceView {
  /** `onClose` leads back to the tables. */
  constructor(store, onClose) {
    this.store = store;
    this.title = make("h2", "");
    this.note = make("p", "cdiag-dim");
    this.user = make("p", "cdiag-provenance-user");
    this.picks = make("div", "cdiag-chips");
    this.panes = make("div", "cdiag-panes");
    const back = makeButton("cdiag-link cdiag-up", "‹ back", onClose);
    this.node = make("div", "cdiag-provenance", make("div", "cdiag-page-head", back, this.title), this.picks, this.note, this.user, this.panes);
    this.node.addEventListener("keydown", (event) => event.key === "Escape" && onClose());
    setShown(this.node, false);
  }

  /** Shows the graphs `sets` (of `traced`) of the compile that is called `title`. */
  async open(title, sets) {
    setText(this.title, `From graph to code: ${title}`);
    const buttons = sets.map((set, i) => makeButton("cdiag-compile", `graph ${i + 1} of ${sets.length}`, () => pick(i)));
    const pick = (i) => {
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === i)));
      return this.show(sets[i]);
    };
    this.picks.replaceChildren(...(sets.length > 1 ? buttons : []));
    setShown(this.node, true);
    await pick(0);
    this.node.querySelector("button").focus({ preventScroll: true });
  }

  close() {
    setShown(this.node, false);
    this.panes.replaceChildren();
  }

  async text(row) {
    const kept = row && this.store.texts.get(row.id);
    if (!kept?.z) return null;
    try {
      return await inflate(kept.z);
    } catch {
      return null; // a damaged file; the text's own section says so
    }
  }

  async show(set) {
    const [mapping, traces, ...bodies] = await Promise.all([set.mapping, set.traces, set.pre, set.post, set.code].map((row) => this.text(row)));
    const told = readJson(mapping);
    this.kernels = readJson(traces);
    const texts = Object.fromEntries(PANES.map(([pane], i) => [pane, (bodies[i] ?? "").split("\n").slice(0, MOST_CODE_LINES)]));
    this.links = partners(texts, told);
    this.codeKernels = new Map();
    linesOfKernels(texts.code, Object.keys(this.kernels)).forEach((lines, kernel) => lines.forEach((line) => this.codeKernels.set(line, kernel)));
    this.lines = {};
    const known = Object.keys(told.postToPre ?? {}).length + Object.keys(told.cppCodeToPost ?? {}).length;
    setText(this.note, known ? "Point at a line, or step to it with Tab, to see what it became and what it was."
      : "torch did not trace the nodes of this graph; the lines of code tell the user's lines.");
    setText(this.user, "");
    this.panes.replaceChildren(...PANES.map(([pane, label], i) => this.pane(pane, label, bodies[i], texts[pane])));
  }

  pane(name, label, body, lines) {
    const highlighter = new Highlighter();
    this.lines[name] = lines.map((line, i) => this.line(name, i, highlighter.line(line)));
    const absent = body === null ? make("p", "cdiag-dim", "not in this page") : null;
    const box = make("div", "cdiag-pane-lines", absent, ...(body === null ? [] : this.lines[name]));
    box.dataset.pane = name;
    return make("section", "cdiag-pane", make("h3", "", label), box);
  }

  line(pane, number, pieces) {
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

  /** Lights a line and its partners; `scrolls` brings the first of them into view. */
  light(pane, number, scrolls) {
    this.node.querySelectorAll(".is-lit").forEach((lit) => lit.classList.remove("is-lit", "is-here"));
    const found = this.links[pane].get(number) ?? {};
    this.lines[pane][number].classList.add("is-lit", "is-here");
    const kernels = new Set(pane === "code" ? [this.codeKernels.get(number)] : []);
    for (const [other, numbers] of Object.entries(found)) {
      const nodes = [...numbers].sort((a, b) => a - b).map((i) => this.lines[other][i]);
      nodes.forEach((node) => node.classList.add("is-lit"));
      if (other === "code") numbers.forEach((i) => kernels.add(this.codeKernels.get(i)));
      if (scrolls && other !== pane && nodes.length) intoView(nodes[nodes.length - 1]);
    }
    const stacks = [...kernels].flatMap((kernel) => this.kernels[kernel] ?? []);
    setText(this.user, userLines(Array.isArray(stacks) ? stacks : []).join("   ·   "));
  }
}

/** Scrolls the pane of a line, not the page. */
function intoView(node) {
  const pane = node.parentNode;
  pane.scrollTop = node.offsetTop - pane.clientHeight / 3;
}

function readJson(text) {
  try {
    const told = JSON.parse(text ?? "{}");
    return told !== null && typeof told === "object" ? told : {};
  } catch {
    return {};
  }
}
