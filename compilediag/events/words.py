"""Words for torch's names of phases, and for the codes of the tables, of Python and of the page.

`docs/make_words.py` writes `views/static/core/words.js` from them.
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
_CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def describe_code(code: str | None) -> str:
    """A code of the tables in words: `guard_miss` is `guard miss`."""
    return CODES.get(code or "") or (code or "unknown").replace("_", " ")


def format_phase(name: str) -> str:
    """A phase in words. Of a name without known words, its last part: `Scheduler.fuse_nodes` is `fuse nodes`."""
    families = (words for pattern, words in PHASE_PATTERNS if re.search(pattern, name))
    last = _CAPITALS.sub(" ", name.rsplit(".", 1)[-1].strip("_")).replace("_", " ")
    return PHASES.get(name) or next(families, None) or last or name
