"""Words for torch's names of phases and for the codes of the tables, and the glossary, of Python and of the page.

`views/esm.py` gives them to the page, `docs/make_glossary.py` writes the page of the glossary.
"""

from __future__ import annotations

import re

#: torch's name of a phase -> words.
PHASES = {
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
    "compile_file": "building C++ code",
}
#: (pattern of names, words), of which the first that matches counts. JavaScript reads the same patterns.
PHASE_PATTERNS = (
    (r"^compile_attempt_0$", "Dynamo tracing"),
    (r"^compile_attempt_\d+$", "Dynamo tracing, restarted"),
    (r"^(_recursive_\w+_passes|pass\..*)$", "Inductor graph passes"),
)
#: Kind of a phase -> its word, and what happens in it; the page has a color for each, in this order.
PHASE_KINDS = {
    "dynamo": (
        "Dynamo",
        "Dynamo traces the Python code into a graph and writes the guards that say when it can be used.",
    ),
    "aot": ("AOTAutograd", "AOTAutograd derives the graph of the backward and simplifies both graphs."),
    "inductor": ("Inductor", "Inductor turns a graph into kernels: it chooses their layout and fuses operations."),
    "codegen": ("code generation", "The code of the kernels is written, built by a compiler, and loaded."),
    "triton": ("Triton", "Triton compiles kernels for the GPU."),
    "tuning": ("tuning", "Several kernels for one operation are built and timed, and the fastest is kept."),
}
#: (pattern of torch's names of phases, kind): the first that matches a whole name counts, in JavaScript too. A name
#: that none matches belongs to the phase that contains it, such as the `gc` of a compile, or `invoke_subgraph_trace`.
PHASE_NAMES = (
    (
        r"\w+_template_(autotuning|precompiling)|benchmark_(fused_nodes|codegened_module)|collective_compute_do_bench"
        r"|CachingAutotuner\.(benchmark_all_configs|co\w+_tuning|combo_sequential_autotune)"
        r"|CUTLASSGemmTemplate\.\w+|cutlass_utils\.gen_ops",
        "tuning",
    ),
    (
        r"CachingAutotuner\.slow_precompile_config|StaticAutotunerFuture\.warm_precompile|TritonBundler\.\w+"
        r"|reload_kernel_in_parent",
        "triton",
    ),
    (
        r"code_gen|GraphLowering\.(codegen|codegen_subgraph|compile_to_fn|compile_to_module)|Scheduler\.codegen"
        r"|(Python|Cpp)Wrapper\w+\.generate|generate_kernel_code_from_nodes|PyCodeCache\.load_by_key_path"
        r"|async_compile\.\w+|AotCodeCompiler\.compile|aoti_\w+|compile_file|VecISA\.check_build"
        r"|vllm\.generate_execution_code",
        "codegen",
    ),
    (
        r"compile_fx\.<locals>\.(fw|bw)_compiler\w*|inductor_\w+|compile_fx_inner|fx_codegen_and_compile"
        r"|additional_fake_tensor_prop|_recursive_\w+_passes|pass\..+|fx\.bucketing\.\w+"
        r"|convert_conv_weights_to_channels_last|GraphLowering\.run|Scheduler\.\w+|CacheBase\.get_system\.triton_key"
        r"|AOTAutogradCache\.inductor_load|CompiledArtifact\.\w+|after_deserialization|TranslationValidator\.validate"
        r"|FbRemoteFxGraphCache\.\w+|remote_fx_graph_cache_\w+|CUDAGraphNode\.record|cudagraphify\.\w+|vllm_backend"
        r"|vllm\.compile_execution_fn",
        "inductor",
    ),
    (
        r"backend_compile|OutputGraph\.call_user_compiler|entire_backward_compile|backward\._backward_impl"
        r"|create_aot_dispatcher_function|aot_\w+|min_cut_rematerialization_partition|invoke_subgraph_trace_joint_graph",
        "aot",
    ),
    (
        r"dynamo|entire_frame_compile|_compile\.compile_inner|compile_attempt_\d+|bytecode_\w+|build_guards|pgo\.\w+"
        r"|fullgraph_capture|compiler_collective|guard_collective|precompile_(build|load)_guards"
        r"|insert_deferred_runtime_asserts",
        "dynamo",
    ),
)
#: Codes, as those of caches and outcomes, whose words are not the code with spaces.
CODES = {
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
    "written": "file written",
}
#: Kind of guard, as the tables have it -> what it checks.
GUARD_KIND_MEANINGS = {
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
    "other": "A guard of another kind.",
}
#: Word on the page or in the documentation -> what it means, in a sentence or two.
GLOSSARY = {
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
    "ran": "What ran instead: eager (the function itself), aot_eager (that backend), raised (an exception), or "
    "unchecked (guards are skipped).",
    "range": "The values that the symbol may have.",
    "recompile": "A compile of a function that was compiled before: a guard of each earlier entry failed at a call.",
    "recompile limit": "A function with this many entries (recompile_limit, 8 by default) is not compiled again.",
    "refused call": "A call that no entry fits, while a stance (torch.compiler.set_stance) or aot_compile allows no "
    "new one.",
    "re-records": "Captures that were repeated, because an earlier graph did not fit.",
    "skips": "How often torch ran a function without a CUDA graph.",
    "source": "Where compilediag gets its data from, and whether it works.",
    "step": "One change of the plan. A finding marked so is fixed by a step of the plan.",
    "stored": "Results that were put into the cache.",
    "symbolic shape": "A symbol such as s0 stands for a size that may vary. Guards on it limit its values.",
    "tier": "local: this machine. remote: a shared server. memory: this process.",
    "times": "How many calls were refused for this reason.",
    "trigger": "What started the compile: a call (dynamo), the first backward (lazy_backward), aot_compile, or "
    "precompile.",
    "vs. extern": "How much longer one call of the library's kernel takes, such as cuBLAS.",
    "vs. runner-up": "How much longer one call of the second best kernel takes.",
    "what changed": "The guarded value of the guard that torch checked first, in the entry with the fewest failing "
    "guards.",
    "warm-ups": "Runs before a capture, which let libraries set up their state.",
}
#: Name of a total or a tab of the page -> word of the glossary.
GLOSSARY_NAMES = {
    "after_warmup": "after warm-up",
    "cache_groups": "cache",
    "cache_hits": "cache hit",
    "collectives": "collective",
    "compiles": "compile",
    "dynamic_decisions": "dynamic",
    "eager_calls": "eager call",
    "export_problems": "export problem",
    "failures": "failure",
    "graph_breaks": "graph break",
    "graph_functions": "CUDA graph",
    "graph_records": "CUDA graph",
    "kernels": "kernel",
    "limit_hits": "recompile limit",
    "lost_s": "lost",
    "own_share": "overhead",
    "recompiles": "recompile",
    "refused_calls": "refused call",
    "sources": "source",
    "symbolic_shapes": "symbolic shape",
    "tuning_s": "autotuning",
    "tunings": "autotuning",
    "where": "call site",
}
_CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def describe_code(code: str | None) -> str:
    """A code of the tables in words: `guard_miss` is `guard miss`."""
    return CODES.get(code or "") or (code or "unknown").replace("_", " ")


def format_phase(name: str) -> str:
    """A phase in words. Of a name without known words, its last part: `Scheduler.fuse_nodes` is `fuse nodes`."""
    families = (words for pattern, words in PHASE_PATTERNS if re.search(pattern, name))
    last = _CAPITALS.sub(" ", name.rsplit(".", 1)[-1].strip("_")).replace("_", " ")
    return PHASES.get(name) or next(families, None) or last or name


def find_phase_kind(name: str) -> str | None:
    """The key of PHASE_KINDS of torch's name of a phase; None if the phase belongs to the one that contains it."""
    return next((kind for pattern, kind in PHASE_NAMES if re.fullmatch(pattern, name)), None)
