"""What to do about each reason for which torch skips CUDA graphs or captures a function again.

The sources are PyTorch's page on CUDAGraph Trees, and torch/_inductor/cudagraph_utils.py, compile_fx.py and
output_code.py.
"""

from __future__ import annotations

SIZES = (
    "Pad to a few sizes, or name the sizes to capture: torch._inductor.config.triton.cudagraph_capture_sizes = (...); "
    "other sizes then run without graphs. torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True captures "
    "nothing with dynamic sizes. Each new size is warmed up and captured separately, and its graph keeps its memory."
)
PATHS = (
    "Free the outputs of earlier steps (or keep y.detach().clone() instead), and call "
    "torch.compiler.cudagraph_mark_step_begin() at the start of each step. torch keeps a graph for each order of "
    "graphs whose outputs are still alive; outputs that are kept in a list, or wait for their backward, add orders."
)
#: What the reason of a skip begins with -> what to change. The first that fits counts.
SKIPS = (
    (
        "mutated inputs",
        "Return a new tensor, or clone the input before the write. For a tensor that lives from call to call, such as "
        "a cache, make it a buffer of the module or call torch._dynamo.mark_static_address(x) once before the first "
        "call: writes to it are then captured. A graph would otherwise write to its own copy of the input.",
    ),
    (
        "input storage mutation",
        "Copy into the input instead: x.copy_(y). The function swaps the memory of an input (set_), which a graph "
        "cannot replay.",
    ),
    (
        "cpu device",
        "Create the CPU tensor on the GPU, or move it there before the call, and pass plain numbers as Python numbers. "
        "torch._inductor.config.graph_partition = True leaves out only the parts on the CPU.",
    ),
    (
        "multiple devices",
        "Move all inputs to one device, and compile what runs on another device as a function of its own. A graph is "
        "for one device.",
    ),
    (
        "no CUDA device in the graph",
        "If it is meant to run on the CPU, compile it without mode='reduce-overhead'.",
    ),
    (
        "graph with symbolic shapes",
        "Use a few fixed sizes (padding, torch.compile(dynamic=False)): each is then captured once. Its sizes are "
        "dynamic, and cudagraph_skip_dynamic_graphs is on.",
    ),
    (
        "incompatible op",
        "Move this operator out of the compiled function, or replace it by one that neither depends on values "
        "(nonzero, item, multinomial with deterministic algorithms) nor waits for the GPU. "
        "torch._inductor.config.graph_partition = True leaves out only such operators.",
    ),
    (
        "index_put_ fallback with boolean",
        "Use torch.where(mask, value, x): boolean indexing waits for a size from the GPU.",
    ),
    (
        "control flow operator",
        "Compile the branches as functions of their own, or compute both and choose with torch.where. torch captures "
        "no function with torch.cond or torch.while_loop on GPU tensors.",
    ),
    ("sparsity not handled", "Keep sparse tensors out of the compiled function. Sparse tensors are not captured."),
    ("non-Tensor inputs", "Make the input part of the module, or a tensor: it is neither a tensor nor a number."),
    (
        "cudagraph capture requires the caching allocator",
        "Turn PyTorch's caching allocator on (PYTORCH_NO_CUDA_MEMORY_CACHING, caching_allocator_enable): CUDA graphs "
        "need it.",
    ),
    (
        "cpp-wrapper",
        "Turn off torch._inductor.config.cpp_wrapper or torch._inductor.config.graph_partition: they exclude each "
        "other.",
    ),
    ("override_cudagraphs", "Remove the override_cudagraphs annotation in the code, which asks for this."),
)
#: torch's name of the invariant that broke -> why, and what to change.
REASONS = {
    "StaticInputIdxMismatch": (
        "a parameter, buffer or marked tensor was replaced",
        "Change the tensor's values (p.data.copy_(new)) instead of the tensor, and call mark_static_address() only on "
        "tensors that stay in place. The graph reads them where they were at the capture.",
    ),
    "CudagraphManagedIdxMismatch": (
        "the output of an earlier graph came from a different place",
        "Call the functions in the same order at every step, with torch.compiler.cudagraph_mark_step_begin() at its "
        "start, or pass x.clone(), which is copied like any other input. An input that comes from another compiled "
        "function has to come from the same graph each time.",
    ),
    "ExpectedDeadIndicesBeforeGraphMismatch": (
        "outputs of an earlier graph are still alive; at the capture they were freed",
        "Free the outputs before the next call, or keep a clone() instead.",
    ),
}
KEPT = "No change is needed if the output is not used again."
OVERWRITTEN = (
    "Keep a copy outside of the compiled function, y = f(x).clone(), or call "
    "torch.compiler.cudagraph_mark_step_begin() before each step if the last one's outputs are not needed. The outputs "
    "of a captured function lie in its graph's memory, which the next run overwrites."
)
GRADIENT = (
    "To accumulate gradients, create the .grad tensors beforehand (one step in eager mode, or zeros); otherwise set "
    "them to None before each backward. A .grad tensor was created during a capture, and the next run overwrites it."
)
STUCK = (
    "Run backward() on the outputs of earlier steps, or detach() and free them, and call "
    "torch.compiler.cudagraph_mark_step_begin() at the start of each step. While they are alive, it cannot be captured."
)
FAILED = (
    "If memory ran out, capture fewer sizes (padding) or a smaller part: graphs keep a memory pool of their own. "
    "Otherwise something in the function waits for the GPU or runs on another stream."
)
_INTRODUCTIONS = ("skipping cudagraphs due to ", "disabling cudagraphs due to ", "disabling cudagraphs for backward ")


def advise_skip(reason: str | None) -> str:
    """What to change after a skip; "" if the reason is not known."""
    text = (reason or "").strip()
    for introduction in _INTRODUCTIONS:
        text = text.removeprefix(introduction)
    return next((advice for head, advice in SKIPS if head in text[:200]), "")


def explain_mismatch(mismatch: str | None) -> tuple[str | None, str]:
    """Why an invariant broke, in words, and what to change; (None, "") if it is not known."""
    return REASONS.get(mismatch or "", (None, ""))
