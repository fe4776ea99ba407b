// torch's phase names, told in five kinds that have a colour and a word each.

/** [kind, what its names look like], the first that fits counts. */
const KINDS = [
  ["triton", /triton|caching_?autotuner|coordesc/i],
  ["codegen", /code_?gen|compile_to_(fn|module)|pycodecache|async_compile|cpp_?compil|compile_file/i],
  ["inductor", /inductor|compile_fx|graphlowering|scheduler|_passes|fx_codegen|fxgraphcache|lowering/i],
  ["aot", /aot|backend_compile|backward_compile|partition|joint|dispatcher|functionaliz/i],
  ["dynamo", /./],
];

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

export const PHASE_KINDS = ["dynamo", "aot", "inductor", "codegen", "triton"];
export const PHASE_WORDS = {
  dynamo: "Dynamo",
  aot: "AOTAutograd",
  inductor: "Inductor",
  codegen: "code generation",
  triton: "Triton",
};

const kindOfName = new Map();

/** One of PHASE_KINDS for a name of torch's. */
export function phaseKind(name) {
  if (!kindOfName.has(name)) kindOfName.set(name, KINDS.find(([, looks]) => looks.test(name || "?"))[0]);
  return kindOfName.get(name);
}

/** A name for people, or torch's own where there is no better one. */
export function phaseLabel(name) {
  return LABELS[name] ?? name;
}
