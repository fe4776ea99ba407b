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
  dynamo: "Dynamo",
  entire_frame_compile: "Dynamo",
  entire_backward_compile: "backward",
  bytecode_tracing: "Dynamo tracing",
  build_guards: "Dynamo guards",
  gc: "garbage collection",
  insert_deferred_runtime_asserts: "checks of sizes",
  "pgo.dynamic_whitelist": "sizes seen before",
  backend_compile: "backend",
  create_aot_dispatcher_function: "AOTAutograd",
  aot_trace_joint_graph: "AOTAutograd joint graph",
  aot_collect_metadata: "AOTAutograd analysis",
  min_cut_rematerialization_partition: "splitting forward and backward",
  "compile_fx.<locals>.fw_compiler_base": "Inductor, forward",
  "compile_fx.<locals>.bw_compiler": "Inductor, backward",
  inductor_compile: "Inductor",
  compile_fx_inner: "Inductor",
  fx_codegen_and_compile: "Inductor",
  additional_fake_tensor_prop: "Inductor shapes",
  "Scheduler.__init__": "Inductor scheduling",
  "Scheduler.fused_nodes": "Inductor fusion",
  "Scheduler.codegen": "Inductor code generation",
  "PythonWrapperCodegen.generate": "Inductor code generation",
  "VecISA.check_build": "checking the CPU",
  compile_file: "building C++ code",
  code_gen: "Inductor code generation",
  "GraphLowering.run": "Inductor lowering",
  "GraphLowering.codegen": "Inductor code generation",
  "GraphLowering.compile_to_fn": "building kernels",
  "GraphLowering.compile_to_module": "building kernels",
  "PyCodeCache.load_by_key_path": "loading kernels",
  "async_compile.wait": "waiting for kernel builds",
};

/** @type {[RegExp, string][]} names that hold a number or the name of a pass */
const FAMILIES = [
  [/^compile_attempt_0$/, "Dynamo tracing"],
  [/^compile_attempt_\d+$/, "Dynamo tracing, restarted"],
  [/^(_recursive_\w+_passes|pass\..*)$/, "Inductor graph passes"],
];

/** @type {Record<string, string>} kind -> its word in the legend */
export const PHASE_WORDS = {
  dynamo: "Dynamo",
  aot: "AOTAutograd",
  inductor: "Inductor",
  codegen: "code generation",
  triton: "Triton",
};

/** @type {Record<string, string>} kind -> what it does, in a sentence */
export const PHASE_MEANINGS = {
  dynamo: "Dynamo traces the Python code into a graph and writes the guards that say when the result can be used.",
  aot: "AOTAutograd derives the graph of the backward and simplifies both graphs.",
  inductor: "Inductor turns a graph into kernels: it chooses their layout and fuses operations.",
  codegen: "The code of the kernels is written, built by a compiler, and loaded.",
  triton: "Triton compiles kernels for the GPU, and times variants of them if autotuning is on.",
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

/** @param {string} name */
function findWords(name) {
  return LABELS[name] ?? FAMILIES.find(([pattern]) => pattern.test(name))?.[1];
}

/**
 * A name for people, or torch's own where there is no better one.
 * @param {string} name
 */
export function phaseLabel(name) {
  return findWords(name) ?? name;
}

/**
 * What to write on a phase: its words, if they fit, or those of its kind.
 * @param {string} name
 */
export function phaseChoices(name) {
  const kind = PHASE_WORDS[phaseKind(name)];
  return [findWords(name) ?? kind, kind];
}
