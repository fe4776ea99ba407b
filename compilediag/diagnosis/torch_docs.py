"""The pages of torch's documentation that explain what a rule is about."""

from __future__ import annotations

from dataclasses import dataclass

from .examples import load_examples

_BASE = "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/"
_PAGES = {
    "recompiles": ("Dealing with recompilations", "compile/programming_model.recompilation.html"),
    "shapes": ("Dynamic shapes", "torch.compiler_dynamic_shapes.html"),
    "breaks": ("Working with graph breaks", "compile/programming_model.graph_breaks_index.html"),
    "skipped": ("Skipped functions", "compile/programming_model.skipped_functions.html"),
    "export": ("torch.export", "export.html"),
    "cudagraphs": ("CUDAGraph Trees", "torch.compiler_cudagraph_trees.html"),
    "trouble": ("torch.compile troubleshooting", "torch.compiler_troubleshooting.html"),
}
#: Beginning of a rule's name -> its page; the first that fits. All other rules with an example are about recompiles.
_BY_PREFIX = {
    **dict.fromkeys(("size_", "rank_changes", "stride_", "duck_", "int_changes", "float_", "specialized"), "shapes"),
    "module_tensor_size": "shapes",
    "graph_break": "breaks",
    **dict.fromkeys(("runs_eagerly", "nothing_to_compile"), "skipped"),
    "export_": "export",
    "cudagraph_": "cudagraphs",
    **dict.fromkeys(("cache_", "choices_", "tuning_", "compile_failed", "ranks_", "used_once"), "trouble"),
    **dict.fromkeys(("dropped", "not_observed"), None),
}


@dataclass(frozen=True)
class TorchPage:
    """A page of torch's documentation."""

    title: str
    url: str


def find_torch_page(rule: str) -> TorchPage | None:
    """The page that explains the cause behind a rule; None for rules of plug-ins and of compilediag itself."""
    known = "recompiles" if rule in load_examples() or rule == "recompile_limit" else None
    page = next((name for prefix, name in _BY_PREFIX.items() if rule.startswith(prefix)), known)
    if page is None:
        return None
    title, path = _PAGES[page]
    return TorchPage(title, _BASE + path)
