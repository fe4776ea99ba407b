// Written by `make docs` (docs/make_words.py) from compilediag/events/words.py; a test holds the two together.

/**
 * `phases` and `codes` of the tables: name -> words. `patterns`: [pattern of the names of phases, words].
 * @type {{ phases: Record<string, string>, patterns: string[][], codes: Record<string, string> }}
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
  }
};
