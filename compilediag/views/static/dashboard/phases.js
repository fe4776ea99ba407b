// torch's phase names, in five kinds that have a color and a word each.

/** @type {[string, RegExp][]} kind, and what its names look like; the first that matches counts */
const KINDS = [
  ["triton", /triton|caching_?autotuner|coordesc/i],
  ["codegen", /code_?gen|compile_to_(fn|module)|pycodecache|async_compile|cpp_?compil|compile_file/i],
  ["inductor", /inductor|compile_fx|graphlowering|scheduler|_passes|fx_codegen|fxgraphcache|lowering/i],
  ["aot", /aot|backend_compile|backward_compile|partition|joint|dispatcher|functionaliz/i],
];

/** @type {Record<string, string>} */
const LABELS = {
  entire_frame_compile: "Dynamo",
  entire_backward_compile: "backward",
  compile_attempt_0: "Dynamo tracing",
  bytecode_tracing: "Dynamo tracing",
  build_guards: "Dynamo guards",
  backend_compile: "backend",
  create_aot_dispatcher_function: "AOTAutograd",
  aot_trace_joint_graph: "AOTAutograd joint graph",
  inductor_compile: "Inductor",
  compile_fx_inner: "Inductor",
  fx_codegen_and_compile: "Inductor",
  code_gen: "Inductor code generation",
  "GraphLowering.run": "Inductor lowering",
  "GraphLowering.codegen": "Inductor code generation",
  "GraphLowering.compile_to_fn": "building kernels",
  "GraphLowering.compile_to_module": "building kernels",
  "PyCodeCache.load_by_key_path": "loading kernels",
  "async_compile.wait": "waiting for kernel builds",
};

/** Kind -> its word in the legend. */
export const PHASE_WORDS = {
  dynamo: "Dynamo",
  aot: "AOTAutograd",
  inductor: "Inductor",
  codegen: "code generation",
  triton: "Triton",
};

/** @type {Map<string, string>} */
const kindOfName = new Map();

/**
 * The kind of one of torch's phase names, a key of PHASE_WORDS.
 * @param {string | null} name
 */
export function phaseKind(name) {
  const text = name ?? "?";
  let kind = kindOfName.get(text);
  if (kind === undefined) {
    kind = KINDS.find(([, pattern]) => pattern.test(text))?.[0] ?? "dynamo";
    kindOfName.set(text, kind);
  }
  return kind;
}

/**
 * A name for people, or torch's own where there is no better one.
 * @param {string} name
 */
export function phaseLabel(name) {
  return LABELS[name] ?? name;
}
