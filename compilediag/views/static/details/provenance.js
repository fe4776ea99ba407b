// What each line became: the graph before autograd, the graph after it and the generated code side by side.
import { CodeHighlighter } from "../core/code.js";
import { formatPlace, lookUp } from "../core/format.js";
import { inflate } from "../core/page-data.js";
import { findAll, onKeys } from "../core/dom.js";
import { html } from "../core/view.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";

const MAPPING = "inductor_provenance_tracking_node_mappings";
const TRACES = "inductor_provenance_tracking_kernel_stack_traces";
const OUTPUT_CODE = "inductor_output_code";
const POST = ["inductor_post_grad_graph", "after_post_grad_graph"];
const PRE = ["before_pre_grad_graph", "inductor_pre_grad_graph", "dynamo_output_graph"];
const NODE = /^\s*%?([A-Za-z_]\w*)\s*(?::[^=]*)?=(?!=)/;
const HANDLE = /\[Provenance debug handles\]\s*(.*)$/;

/**
 * The artifact with one of `names` that was written last before `position`, else the first after it.
 * @type {(artifacts: ArtifactName[], names: string[], position: number) => ArtifactName | null}
 */
function findNearest(artifacts, names, position) {
  for (const name of names) {
    const found = artifacts.map((artifact, i) => ({ artifact, i })).filter(({ artifact }) => artifact.name === name);
    const nearest = found.filter(({ i }) => i < position).pop() ?? found[0];
    if (nearest) return nearest.artifact;
  }
  return null;
}

/** @type {(artifacts: ArtifactName[]) => TracedGraph[]} the graphs whose lines can be linked, of artifacts in order of time */
export function findTracedGraphs(artifacts) {
  return artifacts.flatMap((mapping, i) => {
    const code = mapping.name === MAPPING ? findNearest(artifacts, [OUTPUT_CODE], i) : null;
    const traces = artifacts[i + 1]?.name === TRACES ? artifacts[i + 1] : null;
    return code ? [{ mapping, traces, pre: findNearest(artifacts, PRE, i), post: findNearest(artifacts, POST, i), code }] : [];
  });
}

/**
 * Kernel, as in "cpp_fused_add_0:2" -> its lines in the code: its definition, and the call that has its handle.
 * @type {(lines: string[], kernels: string[]) => Map<string, number[]>}
 */
function findKernelLines(lines, kernels) {
  /** @param {string} kernel */
  const baseName = (kernel) => kernel.replace(/:\d+$/, "");
  /** @type {Map<string, number[]>} */
  const found = new Map(kernels.map((kernel) => [kernel, []]));
  const handled = new Set();
  lines.forEach((line, i) => {
    for (const kernel of HANDLE.exec(line)?.[1].split(/[\s,]+/) ?? []) {
      const name = baseName(kernel);
      const call = lines.findIndex((other, at) => at > i && other.includes(name));
      if (!found.has(kernel)) continue;
      found.get(kernel)?.push(i, ...(call < 0 ? [] : [call]));
      handled.add(kernel);
    }
  });
  for (const [kernel, numbers] of found) {
    const name = baseName(kernel);
    const begin = lines.findIndex((line) => line.startsWith(`${name} = async_compile`)); // of the kernel's source
    const length = lines.slice(begin + 1).findIndex((line) => /^(?:'''|""")/.test(line));
    if (begin >= 0) numbers.push(...Array.from({ length: length < 0 ? 1 : length + 2 }, (_, i) => begin + i));
    if (!handled.has(kernel)) lines.forEach((line, i) => line.includes(`${name}(`) && numbers.push(i));
  }
  return found;
}

/** @type {(texts: PaneTexts, mapping: NodeMapping) => LinkedGraph["links"]} */
function linkLines(texts, mapping) {
  const [toPost, toPre] = [mapping.cppCodeToPost ?? {}, mapping.postToPre ?? {}];
  /** @param {string[]} lines of a graph: node -> the lines that define it */
  const findNodes = (lines) => Map.groupBy(lines.keys(), (i) => NODE.exec(lines[i])?.[1]);
  const [pre, post] = [findNodes(texts.pre), findNodes(texts.post)];
  const kernels = findKernelLines(texts.code, Object.keys(toPost));
  /** @type {Record<Pane, PaneLinks>} */
  const links = { pre: new Map(), post: new Map(), code: new Map() };
  /** @type {JoinLines} */
  const add = (pane, lines, other, others) => {
    for (const line of lines) {
      const known = links[pane].get(line) ?? { pre: new Set(), post: new Set(), code: new Set() };
      links[pane].set(line, known);
      others.forEach((each) => known[other].add(each));
    }
  };
  /** @type {JoinLines} */
  const join = (one, linesOfOne, other, linesOfOther) => {
    add(one, linesOfOne, other, linesOfOther);
    add(other, linesOfOther, one, linesOfOne);
  };
  for (const [kernel, nodes] of Object.entries(toPost)) {
    const code = kernels.get(kernel) ?? [];
    for (const node of nodes) {
      join("code", code, "post", post.get(node) ?? []);
      for (const before of toPre[node] ?? []) join("code", code, "pre", pre.get(before) ?? []);
    }
    add("code", code, "code", code);
  }
  for (const [node, before] of Object.entries(toPre)) {
    for (const name of before) join("post", post.get(node) ?? [], "pre", pre.get(name) ?? []);
  }
  return links;
}

const MOST_CODE_LINES = 6000; // of one text
const FRAME = /File "([^"]+)", line (\d+), in (\S+)\n\s*([^\n]*)/;
/** @type {[Pane, string][]} */
const PANES = [["pre", "from Dynamo"], ["post", "after autograd"], ["code", "generated code"]];
const HELP = "Point at a line, or step to it with Tab, to see the lines that it came from and became.";
const NO_NODES = "torch did not trace the nodes of this graph; lines of generated code show the user's lines.";

/** @param {{title: string, graphs: TracedGraph[], texts: Map<number, StoredText>, onClose: () => void}} props */
export function Provenance({ title, graphs, texts, onClose }) {
  const [picked, pick] = useState(0);
  const [linked, setLinked] = useState(/** @type {LinkedGraph | null} */ (null));
  const back = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => back.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    let isCurrent = true;
    void readGraph(graphs[picked], texts).then((found) => isCurrent && setLinked(found));
    return () => (isCurrent = false);
  }, [picked]);
  const onKey = onKeys({ Escape: onClose }); // the detail that it covers stays open
  return html`
    <div class="cdiag-provenance" onKeyDown=${onKey}>
      <div class="cdiag-page-head">
        <button type="button" class="cdiag-link cdiag-up" ref=${back} onClick=${onClose}>‹ back</button>
        <h2>From graph to code: ${title}</h2>
      </div>
      <div class="cdiag-chips">
        ${graphs.length > 1 && graphs.map((_, i) => html`
          <button type="button" class="cdiag-compile" aria-pressed=${String(i === picked)} onClick=${() => pick(i)}>graph ${i + 1} of ${graphs.length}</button>`)}
      </div>
      ${linked && html`<${Panes} key=${picked} linked=${linked} />`}
    </div>`;
}

/** @param {{linked: LinkedGraph}} props */
function Panes({ linked }) {
  const [chosen, choose] = useState(/** @type {ChosenLine | null} */ (null));
  const { texts, links, codeKernels, stacks } = linked;
  const found = chosen && links[chosen.pane].get(chosen.line);
  const code = new Set([...(chosen?.pane === "code" ? [chosen.line] : []), ...(found?.code ?? [])]);
  /** @type {Record<Pane, Set<number>>} the lines of all panes that belong to the chosen one */
  const lit = { pre: found?.pre ?? new Set(), post: found?.post ?? new Set(), code };
  const colored = useMemo(() => Object.fromEntries(PANES.map(([pane]) => {
    const highlighter = new CodeHighlighter();
    return [pane, texts[pane].map((line) => highlighter.colorLine(line))];
  })), [texts]);
  const panes = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    for (const [name] of chosen?.scrolls ? PANES : []) {
      if (name === chosen?.pane || !lit[name].size) continue;
      // The last of the lines comes into view; the pane scrolls, not the page.
      const pane = findAll(panes.current, `[data-pane=${name}]`)[0];
      const node = /** @type {HTMLElement | undefined} */ (pane?.children[Math.max(...lit[name])]);
      if (node) pane.scrollTop = node.offsetTop - pane.clientHeight / 3;
    }
  }, [chosen]);
  const kernels = new Set([...code].map((line) => codeKernels.get(line)));
  const traces = [...kernels].flatMap((kernel) => (kernel === undefined ? [] : lookUp(stacks, kernel) ?? []));
  const frames = traces.map((stack) => FRAME.exec(String(stack))).filter((match) => match !== null); // of torch's texts of stacks
  const user = new Set(frames.map(([, file, line, name, text]) => `${formatPlace(file, line)} in ${name}: ${text.trim()}`));
  return html`
    <p class="cdiag-dim">${linked.isTraced ? HELP : NO_NODES}</p>
    <p class="cdiag-provenance-user">${[...user].join("   ·   ")}</p>
    <div class="cdiag-panes" ref=${panes}>
      ${PANES.map(([pane, label]) => html`
        <section class="cdiag-pane">
          <h3>${label}</h3>
          <div class="cdiag-pane-lines" data-pane=${pane}>
            ${linked.absent[pane] ? html`<p class="cdiag-dim">not in this page</p>` : colored[pane].map((content, line) => {
              const isLinked = links[pane].has(line) || (pane === "code" && codeKernels.has(line));
              const isHere = chosen?.pane === pane && chosen.line === line;
              const light = isHere || lit[pane].has(line) ? " is-lit" : "";
              const name = `cdiag-code-line${isLinked ? " is-linked" : ""}${light}${isHere ? " is-here" : ""}`;
              if (!isLinked) return html`<div class=${name}>${content}</div>`;
              /** @param {boolean} scrolls */
              const go = (scrolls) => choose({ pane, line, scrolls });
              return html`<div class=${name} tabindex="0" onPointerEnter=${() => go(false)} onFocus=${() => go(true)} onClick=${() => go(true)}>${content}</div>`;
            })}
          </div>
        </section>`)}
    </div>`;
}

/** @type {(graph: TracedGraph, stored: Store["texts"]) => Promise<LinkedGraph>} */
async function readGraph(graph, stored) {
  const artifacts = [graph.mapping, graph.traces, graph.pre, graph.post, graph.code];
  const [mapping, traces, pre, post, code] = await Promise.all(artifacts.map((artifact) => readText(artifact, stored)));
  const [nodes, stacks] = [mapping, traces].map((text) => {
    try {
      return Object(JSON.parse(text ?? "{}"));
    } catch {
      return {};
    }
  });
  /** @param {string | null} text */
  const split = (text) => (text ?? "").split("\n").slice(0, MOST_CODE_LINES);
  const texts = { pre: split(pre), post: split(post), code: split(code) };
  /** @type {Map<number, string>} */
  const codeKernels = new Map();
  findKernelLines(texts.code, Object.keys(stacks)).forEach((lines, kernel) => lines.forEach((line) => codeKernels.set(line, kernel)));
  const isTraced = Object.keys(nodes.postToPre ?? {}).length + Object.keys(nodes.cppCodeToPost ?? {}).length > 0;
  const absent = { pre: pre === null, post: post === null, code: code === null };
  return { texts, absent, links: linkLines(texts, nodes), codeKernels, stacks, isTraced };
}

/** @param {ArtifactName | null} artifact @param {Store["texts"]} stored */
async function readText(artifact, stored) {
  const text = artifact && stored.get(artifact.id);
  if (!text?.z) return null;
  try {
    return await inflate(text);
  } catch {
    return null; // a damaged file; the artifact's own section says so
  }
}
