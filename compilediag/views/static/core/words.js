// Written by `make docs` (docs/make_words.py) from compilediag/events/words.py; a test holds the two together.

/**
 * `phases` and `codes` of the tables: name -> words. `patterns`: [pattern of the names of phases, words]. `phaseKinds`:
 * kind of a phase -> [word, meaning]; `phaseNames`: [pattern of the whole name, kind]. `meanings`: a total, a tab, a
 * label of a column, a mark or a kind of guard -> what it means.
 * @type {{ phases: Record<string, string>, patterns: string[][], phaseKinds: Record<string, string[]>,
 *   phaseNames: string[][], codes: Record<string, string>, meanings: Record<string, string> }}
 */
export const WORDS = {
  "phases": {
    "backend_compile": "backend",
    "build_guards": "Dynamo guards",
    "bytecode_tracing": "Dynamo tracing",
    "create_aot_dispatcher_function": "AOTAutograd",
    "aot_trace_joint_graph": "AOTAutograd joint graph",
    "aot_collect_metadata": "AOTAutograd analysis",
    "compile_fx.<locals>.fw_compiler_base": "Inductor, forward",
    "compile_fx.<locals>.bw_compiler": "Inductor, backward",
    "inductor_compile": "Inductor",
    "compile_fx_inner": "Inductor",
    "fx_codegen_and_compile": "Inductor",
    "code_gen": "Inductor code generation",
    "GraphLowering.run": "Inductor lowering",
    "GraphLowering.codegen": "Inductor code generation",
    "GraphLowering.compile_to_fn": "building kernels",
    "GraphLowering.compile_to_module": "building kernels",
    "Scheduler.__init__": "Inductor scheduling",
    "Scheduler.codegen": "Inductor code generation",
    "Scheduler.fused_nodes": "Inductor fusion",
    "PyCodeCache.load_by_key_path": "loading kernels",
    "async_compile.wait": "waiting for kernel builds",
    "async_compile.precompile": "building kernels",
    "gc": "garbage collection",
    "VecISA.check_build": "checking the CPU",
    "dynamo": "Dynamo",
    "entire_frame_compile": "Dynamo",
    "entire_backward_compile": "backward",
    "insert_deferred_runtime_asserts": "checks of sizes",
    "pgo.dynamic_whitelist": "sizes seen before",
    "min_cut_rematerialization_partition": "splitting forward and backward",
    "additional_fake_tensor_prop": "Inductor shapes",
    "PythonWrapperCodegen.generate": "Inductor code generation",
    "compile_file": "building C++ code"
  },
  "patterns": [
    [
      "^compile_attempt_0$",
      "Dynamo tracing"
    ],
    [
      "^compile_attempt_\\d+$",
      "Dynamo tracing, restarted"
    ],
    [
      "^(_recursive_\\w+_passes|pass\\..*)$",
      "Inductor graph passes"
    ]
  ],
  "phaseKinds": {
    "dynamo": [
      "Dynamo",
      "Dynamo traces the Python code into a graph and writes the guards that say when it can be used."
    ],
    "aot": [
      "AOTAutograd",
      "AOTAutograd derives the graph of the backward and simplifies both graphs."
    ],
    "inductor": [
      "Inductor",
      "Inductor turns a graph into kernels: it chooses their layout and fuses operations."
    ],
    "codegen": [
      "code generation",
      "The code of the kernels is written, built by a compiler, and loaded."
    ],
    "triton": [
      "Triton",
      "Triton compiles kernels for the GPU."
    ],
    "tuning": [
      "tuning",
      "Several kernels for one operation are built and timed, and the fastest is kept."
    ]
  },
  "phaseNames": [
    [
      "\\w+_template_(autotuning|precompiling)|benchmark_(fused_nodes|codegened_module)|collective_compute_do_bench|CachingAutotuner\\.(benchmark_all_configs|co\\w+_tuning|combo_sequential_autotune)|CUTLASSGemmTemplate\\.\\w+|cutlass_utils\\.gen_ops",
      "tuning"
    ],
    [
      "CachingAutotuner\\.slow_precompile_config|StaticAutotunerFuture\\.warm_precompile|TritonBundler\\.\\w+|reload_kernel_in_parent",
      "triton"
    ],
    [
      "code_gen|GraphLowering\\.(codegen|codegen_subgraph|compile_to_fn|compile_to_module)|Scheduler\\.codegen|(Python|Cpp)Wrapper\\w+\\.generate|generate_kernel_code_from_nodes|PyCodeCache\\.load_by_key_path|async_compile\\.\\w+|AotCodeCompiler\\.compile|aoti_\\w+|compile_file|VecISA\\.check_build|vllm\\.generate_execution_code",
      "codegen"
    ],
    [
      "compile_fx\\.<locals>\\.(fw|bw)_compiler\\w*|inductor_\\w+|compile_fx_inner|fx_codegen_and_compile|additional_fake_tensor_prop|_recursive_\\w+_passes|pass\\..+|fx\\.bucketing\\.\\w+|convert_conv_weights_to_channels_last|GraphLowering\\.run|Scheduler\\.\\w+|CacheBase\\.get_system\\.triton_key|AOTAutogradCache\\.inductor_load|CompiledArtifact\\.\\w+|after_deserialization|TranslationValidator\\.validate|FbRemoteFxGraphCache\\.\\w+|remote_fx_graph_cache_\\w+|CUDAGraphNode\\.record|cudagraphify\\.\\w+|vllm_backend|vllm\\.compile_execution_fn",
      "inductor"
    ],
    [
      "backend_compile|OutputGraph\\.call_user_compiler|entire_backward_compile|backward\\._backward_impl|create_aot_dispatcher_function|aot_\\w+|min_cut_rematerialization_partition|invoke_subgraph_trace_joint_graph",
      "aot"
    ],
    [
      "dynamo|entire_frame_compile|_compile\\.compile_inner|compile_attempt_\\d+|bytecode_\\w+|build_guards|pgo\\.\\w+|fullgraph_capture|compiler_collective|guard_collective|precompile_(build|load)_guards|insert_deferred_runtime_asserts",
      "dynamo"
    ]
  ],
  "codes": {
    "fx_graph": "FX graph",
    "aot_autograd": "AOTAutograd",
    "dynamo_code": "Dynamo code",
    "py_code": "Python code",
    "cpp_code": "C++ code",
    "cuda_code": "CUDA code",
    "triton_code": "Triton code",
    "triton_bundle": "Triton bundle",
    "triton_template": "Triton template",
    "pgo": "PGO",
    "saved": "stored",
    "written": "file written"
  },
  "meanings": {
    "after warm-up": "What compiled after the program said that it is warm (session.end_warmup): each is an incident.",
    "autotuning": "Runs several kernels for one operation and keeps the fastest.",
    "backend time": "Everything below Dynamo: AOTAutograd, Inductor, building kernels.",
    "break-even": "After so many calls the tuning has paid for itself.",
    "bypassed": "Lookups that were skipped, because this cannot be cached or is not compiled.",
    "cache": "torch keeps compiled code in several caches. A row sums up the lookups of a function in one of them.",
    "cache entry": "One compiled version of a function or graph, with its guards. A call uses the first one that fits.",
    "cache hit": "A compiled graph that came from a cache on disk or in memory, so that it did not have to be built.",
    "call site": "The lines of your code that led to a compile.",
    "change": "The value that the entry is for, and the one that came. Other values that changed too are counted.",
    "codegen": "Writing, building and loading the code of the kernels.",
    "collective": "Communication between ranks, in the order in which a compiled graph starts it.",
    "compile": "torch traces a function, or the part of it after a graph break, and builds code for it.",
    "compile time": "It costs compile time without causing a recompile. The plan lists it under its costs.",
    "CUDA graph": "A recording of GPU work that is started as a whole.",
    "Dynamo": "Traces Python code into a graph and writes its guards. Its time includes the backend.",
    "dynamic": "A size or number that torch stopped treating as a constant, because it changed.",
    "eager call": "A call that ran without compiled code.",
    "expected": "Each compiled version is needed, so there is nothing to fix.",
    "expected → actual": "The value that the entry is for, and the one that came.",
    "export problem": "What torch.export could not prove or trace.",
    "failed alone": "Recompiles where some entry had no other failing guard.",
    "failure": "A compile that failed, or a function that torch gave up on. It runs without being compiled.",
    "first": "The guard that torch checked first, and that failed: the reason that torch reports.",
    "frame": "What Dynamo compiles: a function, or the part of it after a graph break.",
    "graph break": "Code that torch cannot trace splits a function; the parts around it are compiled separately.",
    "guard": "A condition on an input that torch checks before it uses an entry.",
    "guards": "How many conditions are checked at each call.",
    "Inductor": "Turns a graph into kernels.",
    "kernel": "A piece of machine code that Inductor builds, for the GPU or the CPU.",
    "lost": "Compile time of a recompile; as a total, of all recompiles.",
    "ops": "Calls of operators in the graph.",
    "overhead": "The time that recording itself took; its share of the compile time.",
    "plan": "The smallest set of changes that saves the most compile seconds.",
    "ran": "What ran instead: eager (the function itself), aot_eager (that backend), raised (an exception), or unchecked (guards are skipped).",
    "range": "The values that the symbol may have.",
    "recompile": "A compile of a function that was compiled before: a guard of each earlier entry failed at a call.",
    "recompile limit": "A function with this many entries (recompile_limit, 8 by default) is not compiled again.",
    "refused call": "A call that no entry fits, while a stance (torch.compiler.set_stance) or aot_compile allows no new one.",
    "re-records": "Captures that were repeated, because an earlier graph did not fit.",
    "skips": "How often torch ran a function without a CUDA graph.",
    "source": "Where compilediag gets its data from, and whether it works.",
    "step": "One change of the plan. A finding marked so is fixed by a step of the plan.",
    "stored": "Results that were put into the cache.",
    "symbolic shape": "A symbol such as s0 stands for a size that may vary. Guards on it limit its values.",
    "tier": "local: this machine. remote: a shared server. memory: this process.",
    "times": "How many calls were refused for this reason.",
    "trigger": "What started the compile: a call (dynamo), the first backward (lazy_backward), aot_compile, or precompile.",
    "vs. extern": "How much longer one call of the library's kernel takes, such as cuBLAS.",
    "vs. runner-up": "How much longer one call of the second best kernel takes.",
    "what changed": "The guarded value of the guard that torch checked first, in the entry with the fewest failing guards.",
    "warm-ups": "Runs before a capture, which let libraries set up their state.",
    "after_warmup": "What compiled after the program said that it is warm (session.end_warmup): each is an incident.",
    "cache_groups": "torch keeps compiled code in several caches. A row sums up the lookups of a function in one of them.",
    "cache_hits": "A compiled graph that came from a cache on disk or in memory, so that it did not have to be built.",
    "collectives": "Communication between ranks, in the order in which a compiled graph starts it.",
    "compiles": "torch traces a function, or the part of it after a graph break, and builds code for it.",
    "dynamic_decisions": "A size or number that torch stopped treating as a constant, because it changed.",
    "eager_calls": "A call that ran without compiled code.",
    "export_problems": "What torch.export could not prove or trace.",
    "failures": "A compile that failed, or a function that torch gave up on. It runs without being compiled.",
    "graph_breaks": "Code that torch cannot trace splits a function; the parts around it are compiled separately.",
    "graph_functions": "A recording of GPU work that is started as a whole.",
    "graph_records": "A recording of GPU work that is started as a whole.",
    "kernels": "A piece of machine code that Inductor builds, for the GPU or the CPU.",
    "limit_hits": "A function with this many entries (recompile_limit, 8 by default) is not compiled again.",
    "lost_s": "Compile time of a recompile; as a total, of all recompiles.",
    "own_share": "The time that recording itself took; its share of the compile time.",
    "recompiles": "A compile of a function that was compiled before: a guard of each earlier entry failed at a call.",
    "refused_calls": "A call that no entry fits, while a stance (torch.compiler.set_stance) or aot_compile allows no new one.",
    "sources": "Where compilediag gets its data from, and whether it works.",
    "symbolic_shapes": "A symbol such as s0 stands for a size that may vary. Guards on it limit its values.",
    "tuning_s": "Runs several kernels for one operation and keeps the fastest.",
    "tunings": "Runs several kernels for one operation and keeps the fastest.",
    "where": "The lines of your code that led to a compile.",
    "tensor_size": "Checks a size of a tensor.",
    "tensor_stride": "Checks a stride of a tensor: how far apart its elements are in memory.",
    "tensor_rank": "Checks the number of dimensions of a tensor.",
    "tensor_dtype": "Checks the dtype of a tensor.",
    "tensor_device": "Checks the device of a tensor.",
    "dispatch_keys": "Checks which of torch's dispatch keys a tensor has: its device, layout, subclass, gradient.",
    "requires_grad": "Checks whether a tensor requires a gradient.",
    "type": "Checks the type of an object.",
    "value": "Checks the value of a constant: a number, a text, a flag.",
    "identity": "Checks that it is the very same object.",
    "length": "Checks the length of a list, tuple or dict.",
    "dict_keys": "Checks the keys of a dict.",
    "hasattr": "Checks whether an object has an attribute.",
    "alias": "Checks whether two inputs are the same tensor.",
    "symbolic_shape": "Checks how sizes relate to each other, or the values that a dynamic size may have.",
    "global_state": "Checks modes of torch: gradients, autocast, deterministic algorithms, number of threads, TF32.",
    "default_device": "Checks torch's default device.",
    "mode_stack": "Checks which function modes are active.",
    "backend": "Checks that torch.compile has the same backend and options.",
    "dead_reference": "The guarded object was deleted, so the entry cannot be used any more.",
    "all_passed": "No guard failed when torch looked for one: another thread had compiled the same meanwhile.",
    "other": "A guard of another kind."
  }
};
