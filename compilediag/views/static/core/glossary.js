// What the words of the page mean, in a sentence or two each. Shown on hover and on focus.

/** @type {Record<string, string>} */
const MEANINGS = {
  // Totals and tabs
  compiles: "A compile is torch tracing a function, or the part of it after a graph break, and building code for it.",
  recompiles:
    "A recompile is a compile of a function that was compiled before: a guard of each earlier version failed at a call.",
  where: "The lines of your code that led to each compile.",
  failures: "Compiles that failed, and functions that torch gave up on. They run without being compiled.",
  cache_hits: "Compiled graphs that came from a cache on disk or in memory, so that they did not have to be built.",
  cache_groups: "torch keeps compiled code in several caches. A row sums up the lookups of a function in one of them.",
  tuning_s: "Autotuning runs several kernels for one operation and keeps the fastest.",
  tunings: "Autotuning runs several kernels for one operation and keeps the fastest.",
  graph_records: "A CUDA graph is a recording of GPU work that is started as a whole.",
  graph_functions: "A CUDA graph is a recording of GPU work that is started as a whole.",
  kernels: "The pieces of machine code that Inductor builds, for the GPU or the CPU.",
  refused_calls:
    "Calls that no compiled version fits, while a stance (torch.compiler.set_stance) or aot_compile allows no new one.",
  graph_breaks: "Code that torch cannot trace splits a function: the part before and the part after are compiled separately.",
  dynamic_decisions: "Sizes and numbers that torch stopped treating as constants, because they changed.",
  symbolic_shapes: "A symbol such as s0 stands for a size that may vary. Guards on it limit its values.",
  export_problems: "What torch.export could not prove or trace.",
  collectives: "Communication between ranks, in the order in which a compiled graph starts it.",
  sources: "Where compilediag gets its data from, and whether each of them works.",
  eager_calls: "Calls that ran without compiled code.",
  own_share: "What recording itself took, as a share of the compile time.",
  lost_s: "Compile time of recompiles.",
  limit_hits: "Functions that reached recompile_limit. torch compiles no further versions of them.",
  // Columns
  lost: "Compile time of this recompile.",
  guard: "A condition on an input that torch checks before it uses a compiled version.",
  "expected → actual": "The value that the compiled version is for, and the one that came.",
  times: "How many calls were refused for this reason.",
  ran: "What ran instead: eager (the function itself), aot_eager (that backend), raised (an exception), or unchecked (guards are skipped).",
  trigger: "What started the compile: a call (dynamo), the first backward (lazy_backward), aot_compile, or precompile.",
  Dynamo: "Traces Python code into a graph and writes its guards. Its time includes the backend.",
  "backend time": "Everything below Dynamo: AOTAutograd, Inductor, building kernels.",
  Inductor: "Turns a graph into kernels.",
  codegen: "Writing, building and loading the code of the kernels.",
  guards: "How many conditions are checked at each call.",
  ops: "Calls of operators in the graph.",
  tier: "local: this machine. remote: a shared server. memory: this process.",
  bypassed: "Lookups that were skipped, because this cannot be cached or is not compiled.",
  stored: "Results that were put into the cache.",
  "vs. runner-up": "How much longer one call of the second best kernel takes.",
  "vs. extern": "How much longer one call of the library's kernel takes, such as cuBLAS.",
  "break-even": "After so many calls the tuning has paid for itself.",
  "re-records": "Captures that were repeated, because an earlier graph did not fit.",
  skips: "How often torch ran a function without a CUDA graph.",
  "warm-ups": "Runs before a capture, which let libraries set up their state.",
  range: "The values that the symbol may have.",
  // Marks
  first: "The guard that torch checked first, and that failed: the reason that torch reports.",
  closest: "The earlier version with the fewest failing guards.",
  expected: "Each compiled version is needed, so there is nothing to fix.",
  "compile time": "It costs compile time without causing a recompile. The plan lists it under its costs.",
  step: "A step of the plan above fixes it.",
  // Kinds of guards, as the tables have them
  tensor_size: "Checks a size of a tensor.",
  tensor_stride: "Checks a stride of a tensor: how far apart its elements are in memory.",
  tensor_rank: "Checks the number of dimensions of a tensor.",
  tensor_dtype: "Checks the dtype of a tensor.",
  tensor_device: "Checks the device of a tensor.",
  dispatch_keys: "Checks which of torch's dispatch keys a tensor has: its device, layout, subclass, gradient.",
  requires_grad: "Checks whether a tensor requires a gradient.",
  type: "Checks the type of an object.",
  value: "Checks the value of a constant: a number, a text, a flag.",
  identity: "Checks that it is the very same object.",
  length: "Checks the length of a list, tuple or dict.",
  dict_keys: "Checks the keys of a dict.",
  hasattr: "Checks whether an object has an attribute.",
  alias: "Checks whether two inputs are the same tensor.",
  symbolic_shape: "Checks how sizes relate to each other, or the values that a dynamic size may have.",
  global_state: "Checks modes of torch: gradients, autocast, deterministic algorithms, number of threads, TF32.",
  default_device: "Checks torch's default device.",
  mode_stack: "Checks which function modes are active.",
  backend: "Checks that torch.compile has the same backend and options.",
  dead_reference: "The guarded object was deleted, so the compiled version cannot be used any more.",
  other: "A guard of another kind.",
};

/**
 * What a word means; null for one that needs no explanation.
 * @param {string} word a total, a tab, a label of a column, a mark or a kind of guard
 */
export function explain(word) {
  return Object.hasOwn(MEANINGS, word) ? MEANINGS[word] : null;
}
