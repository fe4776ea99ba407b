// Which lines of the graph before autograd, the graph after it and the generated code belong together.

/** @typedef {"pre" | "post" | "code"} Pane */
/** @typedef {Record<Pane, string[]>} PaneTexts the lines of each pane */
/** @typedef {Map<number, Record<Pane, Set<number>>>} PaneLinks line -> the lines of all panes that belong to it */
/** @typedef {(pane: Pane, lines: number[], other: Pane, others: number[]) => void} Join */
/** @typedef {{id: number, name: string | null}} ArtifactName */
/** @typedef {{mapping: ArtifactName, traces: ArtifactName | null, pre: ArtifactName | null, post: ArtifactName | null, code: ArtifactName}} TracedGraph */
/** @typedef {{cppCodeToPost?: Record<string, string[]>, postToPre?: Record<string, string[]>}} NodeMapping torch's own names */

const MAPPING = "inductor_provenance_tracking_node_mappings";
const TRACES = "inductor_provenance_tracking_kernel_stack_traces";
const OUTPUT_CODE = "inductor_output_code";
const POST = ["inductor_post_grad_graph", "after_post_grad_graph"];
const PRE = ["before_pre_grad_graph", "inductor_pre_grad_graph", "dynamo_output_graph"];
const NODE = /^\s*%?([A-Za-z_]\w*)\s*(?::[^=]*)?=(?!=)/;
const HANDLE = /\[Provenance debug handles\]\s*(.*)$/;

/**
 * The artifact with one of `names` that was written last before `position`, else the first after it.
 * @param {ArtifactName[]} artifacts
 * @param {string[]} names
 * @param {number} position
 */
function findNearest(artifacts, names, position) {
  for (const name of names) {
    const found = artifacts.map((artifact, i) => ({ artifact, i })).filter(({ artifact }) => artifact.name === name);
    const nearest = found.filter(({ i }) => i < position).pop() ?? found[0];
    if (nearest) return nearest.artifact;
  }
  return null;
}

/**
 * The graphs of a compile whose lines can be linked.
 * @param {ArtifactName[]} artifacts in order of time
 */
export function findTracedGraphs(artifacts) {
  /** @type {TracedGraph[]} */
  const graphs = [];
  artifacts.forEach((mapping, i) => {
    const code = mapping.name === MAPPING ? findNearest(artifacts, [OUTPUT_CODE], i) : null;
    if (!code) return;
    const traces = artifacts[i + 1]?.name === TRACES ? artifacts[i + 1] : null;
    graphs.push({ mapping, traces, pre: findNearest(artifacts, PRE, i), post: findNearest(artifacts, POST, i), code });
  });
  return graphs;
}

/**
 * Node of a graph -> the lines that define it.
 * @param {string[]} lines
 */
function findNodeLines(lines) {
  return Map.groupBy(lines.keys(), (i) => NODE.exec(lines[i])?.[1]);
}

/**
 * Kernel, as in "cpp_fused_add_0:2" -> its lines in the code: its definition, and the call that has its handle.
 * @param {string[]} lines
 * @param {string[]} kernels
 */
export function findKernelLines(lines, kernels) {
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
    numbers.push(...findSource(lines, name));
    if (!handled.has(kernel)) lines.forEach((line, i) => line.includes(`${name}(`) && numbers.push(i));
  }
  return found;
}

/** @param {string} kernel */
function baseName(kernel) {
  return kernel.replace(/:\d+$/, "");
}

/**
 * The lines from `name = async_compile...` to the end of the kernel's source.
 * @param {string[]} lines
 * @param {string} name
 */
function findSource(lines, name) {
  const begin = lines.findIndex((line) => line.startsWith(`${name} = async_compile`));
  if (begin < 0) return [];
  const length = lines.slice(begin + 1).findIndex((line) => /^(?:'''|""")/.test(line));
  return Array.from({ length: length < 0 ? 1 : length + 2 }, (_, i) => begin + i);
}

/**
 * The lines of all panes that belong to each line.
 * @param {PaneTexts} texts
 * @param {NodeMapping} mapping
 */
export function linkLines(texts, mapping) {
  const [toPost, toPre] = [mapping.cppCodeToPost ?? {}, mapping.postToPre ?? {}];
  const [pre, post] = [findNodeLines(texts.pre), findNodeLines(texts.post)];
  const kernels = findKernelLines(texts.code, Object.keys(toPost));
  /** @type {Record<Pane, PaneLinks>} */
  const links = { pre: new Map(), post: new Map(), code: new Map() };
  /** @type {Join} */
  const add = (pane, lines, other, others) => {
    for (const line of lines) {
      const known = links[pane].get(line) ?? { pre: new Set(), post: new Set(), code: new Set() };
      links[pane].set(line, known);
      others.forEach((each) => known[other].add(each));
    }
  };
  /** @type {Join} */
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
