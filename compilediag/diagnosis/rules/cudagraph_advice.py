"""What to do about each reason that torch has not to capture a function in a CUDA graph, or to capture it again.

After PyTorch's page on CUDAGraph Trees, and torch/_inductor/cudagraph_utils.py, compile_fx.py and output_code.py.
"""

from __future__ import annotations

SIZES = (
    "Each new size is warmed up and captured for itself, and its graph keeps its memory. Pad to a few sizes, or name "
    "those to be captured, torch._inductor.config.triton.cudagraph_capture_sizes = (...): others then run without. "
    "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True captures nothing with dynamic sizes."
)
PATHS = (
    "torch keeps a graph for each order of graphs whose outputs are still alive. Outputs of earlier steps seem to pile "
    "up (kept in a list, or waiting for their backward): let them go, or keep y.detach().clone(), and call "
    "torch.compiler.cudagraph_mark_step_begin() at the begin of each step."
)
#: What the reason of a skip begins with -> what to change. The first that fits counts.
SKIPS = (
    (
        "mutated inputs",
        "It writes into a tensor that it is handed from outside, and a graph would write to its own copy of it. "
        "Return a new tensor, or clone the input before the write. Where the tensor lives on from call to call (a "
        "cache), make it a buffer of the module or call torch._dynamo.mark_static_address(x) once, before the first "
        "call: writing into those is captured.",
    ),
    (
        "input storage mutation",
        "It swaps the memory of an input (set_), which a graph can't replay: copy into the input instead, x.copy_(y).",
    ),
    (
        "cpu device",
        "A CPU tensor takes part in it: make or move it to the GPU before the call, and pass plain numbers as Python "
        "numbers. torch._inductor.config.graph_partition = True leaves out only the parts on the CPU.",
    ),
    (
        "multiple devices",
        "A graph is of one device: move all inputs to one, and compile what runs on another as a function of its own.",
    ),
    (
        "no CUDA device in the graph",
        "Nothing in it runs on a GPU: if that is meant, compile it without mode='reduce-overhead'.",
    ),
    (
        "graph with symbolic shapes",
        "Its sizes are dynamic and cudagraph_skip_dynamic_graphs is on: with a few fixed sizes (padding, "
        "torch.compile(dynamic=False)) it would be captured, once a size.",
    ),
    (
        "incompatible op",
        "This operator can't be captured: take it out of the compiled function, or replace it by one that neither "
        "depends on values (nonzero, item, multinomial under deterministic algorithms) nor waits for the GPU. "
        "torch._inductor.config.graph_partition = True leaves out only such operators.",
    ),
    (
        "index_put_ fallback with boolean",
        "Boolean indexing asks the GPU for a size in the midst of it: use torch.where(mask, value, x) instead.",
    ),
    (
        "control flow operator",
        "It has torch.cond or torch.while_loop on tensors of the GPU, and then torch captures none of it: compile the "
        "branches as functions of their own, or compute both and choose with torch.where.",
    ),
    ("sparsity not handled", "Sparse tensors are not captured: keep them out of the compiled function."),
    ("non-Tensor inputs", "An input is neither tensor nor number: make it part of the module, or a tensor."),
    (
        "cudagraph capture requires the caching allocator",
        "PyTorch's caching allocator is off (PYTORCH_NO_CUDA_MEMORY_CACHING, or caching_allocator_enable(False)), and "
        "graphs need it.",
    ),
    (
        "cpp-wrapper",
        "The C++ wrapper and graph partitions exclude each other: switch one of torch._inductor.config.cpp_wrapper and "
        "torch._inductor.config.graph_partition off.",
    ),
    ("override_cudagraphs", "That is what the override_cudagraphs annotation in the code asks for."),
)
#: torch's name of the invariant that broke -> why, and what to change.
REASONS = {
    "StaticInputIdxMismatch": (
        "a parameter, buffer or marked tensor is another tensor now",
        "The graph reads it where it was when it was captured. Change its values (p.data.copy_(new)) in place of the "
        "tensor, and call mark_static_address() only on what stays where it is.",
    ),
    "CudagraphManagedIdxMismatch": (
        "the output of an earlier graph came from another place",
        "An input that comes from another compiled function has to come from the same one of its graphs each time. "
        "Call the functions in the same order at every step, with torch.compiler.cudagraph_mark_step_begin() at its "
        "begin, or pass x.clone(), which is copied like any other input.",
    ),
    "ExpectedDeadIndicesBeforeGraphMismatch": (
        "outputs of an earlier graph are still alive that were gone at the capture",
        "Somebody keeps outputs longer than at the capture: drop them before the next call, or keep a clone() and let "
        "the outputs go.",
    ),
}
OVERWRITTEN = (
    "The outputs of a captured function lie in its graph's memory, which the next run writes anew. Keep a copy, "
    "y = f(x).clone(), outside of the compiled function, or call torch.compiler.cudagraph_mark_step_begin() before "
    "each step if nothing of the last one is needed."
)
GRADIENT = (
    "A .grad tensor was made while a graph was captured, and the next run writes over it. To accumulate gradients, "
    "make the .grad tensors beforehand (one step in eager mode, or zeros); else set them to None before each backward."
)
STUCK = (
    "Outputs of earlier steps keep it from being captured: run backward() on them or detach() them, let them go, and "
    "call torch.compiler.cudagraph_mark_step_begin() at the begin of each step."
)
FAILED = (
    "The capture ended in an error. Where memory ran out: graphs keep a memory pool of their own, so capture fewer "
    "sizes (padding), or a smaller part. Else something in it waits for the GPU or runs on another stream."
)


def advise_skip(reason: str | None) -> str:
    """What to change for a skip; "" if this reason is not known."""
    text = (reason or "").strip()
    for head in ("skipping cudagraphs due to ", "disabling cudagraphs due to ", "disabling cudagraphs for backward "):
        text = text.removeprefix(head)
    return next((advice for head, advice in SKIPS if head in text[:200]), "")


def explain_mismatch(mismatch: str | None) -> tuple[str | None, str]:
    """Why an invariant broke, in words, and what to change; (None, "") for one that is not known."""
    return REASONS.get(mismatch or "", (None, ""))
