"""The pages of torch's documentation that findings and steps link to."""

import pytest

from .session_builder import page_of
from .tables_builder import changes, compiled, graph, graph_break, sizes

#: What shows a rule, and the title of the page that it links to.
PAGES = {
    "size_changes": (sizes("4", "6"), "Dynamic shapes"),
    "graph_break": ([graph_break()], "Working with graph breaks"),
    "cudagraph_skip": ([graph("skip", reason="mutated inputs")], "CUDAGraph Trees"),
    "train_eval": (changes("self.training", "value", "True", "False"), "Dealing with recompilations"),
    "recompile_limit": ([compiled(limit="recompile_limit", outcome="failed")], "Dealing with recompilations"),
}


@pytest.mark.parametrize("rule", PAGES)
def test_the_page_is_about_the_cause(session_of, rule):
    events, title = PAGES[rule]
    shown = page_of(session_of(*events))
    pages = shown["torch_docs"]
    assert pages[rule]["title"] == title
    assert all(page["url"].startswith("https://docs.pytorch.org/docs/stable/") for page in pages.values())
    about_torch = {finding["rule"] for finding in shown["findings"]} - {"not_observed", "dropped"}
    assert about_torch <= pages.keys(), "each cause has a page"
