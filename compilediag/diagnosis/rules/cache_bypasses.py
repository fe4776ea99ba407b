"""What to do about each reason for which torch's caches skip a graph.

The sources are torch/_functorch/_aot_autograd/autograd_cache.py and torch/_inductor/codecache.py.
"""

from __future__ import annotations

import re

from ..change import CodeChange
from ..settings import Settings, fix_code

_CUSTOM_FUNCTIONS: Settings = {"autograd_cache_allow_custom_autograd_functions": True}
_CUSTOM_PASS = re.compile(r"Unsupported (?:(pre grad|post grad|joint) custom pass|(_\w+pass))")
_FUNCTION = re.compile(r"Function module: (\S+?),?\s+Function name: (\S+)")
#: What torch's reason begins with -> what to do about it.
_TEXTS = (
    ("Cannot cache a graph with freezing", "This is expected with freezing: the weights are part of the graph."),
    ("Compiled autograd is enabled", "Compile without compiled autograd to use the cache: its graphs are not cached."),
    (
        "SAC context_fn does not have a cache_hash",
        "Give the context_fn of the checkpointing an attribute cache_hash, a string that changes with what it does.",
    ),
    (
        "CustomRuntimeEstimator.uuid()",
        "Return a string that changes with what it does from the estimator's uuid().",
    ),
    ("CustomKnapsackSolver.uuid()", "Return a string that changes with what it does from the solver's uuid()."),
    (
        "activation_memory_budget_runtime_estimator is a raw callable",
        "Make the estimator a CustomRuntimeEstimator with a uuid().",
    ),
    ("activation_memory_budget_solver is a raw callable", "Make the solver a CustomKnapsackSolver with a uuid()."),
    ("mkldnn tensors unpickleable", "Keep mkldnn tensors out of the compiled function: convert them with to_dense()."),
    (
        "Failed to pickle cache key",
        "Keep objects that cannot be pickled (lambdas, locks, open files) out of the options of the compile.",
    ),
    ("AOTAutogradCache requires triton", "Install triton 3.2 or later."),
)


def find_bypass_change(reason: str) -> CodeChange | None:
    """The change after which torch caches the graph; None if the reason is not known."""
    if reason.startswith("FX graph cache is not enabled"):
        return CodeChange(text="Set torch._inductor.config.fx_graph_cache = True, which AOTAutogradCache needs.")
    if "autograd.function.FunctionCtx" in reason or "autograd_function_apply" in reason:
        return CodeChange(settings=_CUSTOM_FUNCTIONS)
    if _CUSTOM_PASS.match(reason):
        return CodeChange(
            text="Make the pass a torch._inductor.custom_graph_pass.CustomGraphPass whose uuid() returns a string that "
            "changes with what it does (torch._inductor.custom_graph_pass.get_hash_for_files((__file__,)))."
        )
    if reason.startswith("Unsupported call_function target") and (found := _FUNCTION.search(reason)):
        name = f"{found[1]}.{found[2]}"
        return CodeChange(
            text=f"If {name} depends on its arguments alone, "
            f'torch._inductor.config.unsafe_marked_cacheable_functions = {{"{name}": "version 1"}} allows it.'
        )
    return next((CodeChange(text=text) for head, text in _TEXTS if reason.startswith(head)), None)


def describe_bypass_change(change: CodeChange | None) -> str:
    """The change as a sentence; "" if there is none."""
    if change is None:
        return ""
    return f"Set {fix_code(change.settings)}." if change.settings else change.text


def advise_bypass(reason: str) -> str:
    """What to do about a bypass with torch's `reason`; "" if nothing special is known."""
    return describe_bypass_change(find_bypass_change(reason))
