"""The pages of torch's documentation that findings and steps link to."""

import pytest

from compilediag.diagnosis.registry import find_torch_page, load_examples


@pytest.mark.parametrize("rule", sorted(load_examples()))
def test_each_cause_has_a_page(rule):
    page = find_torch_page(rule)
    if rule in ("dropped", "not_observed"):  # these are about compilediag itself
        assert page is None
    else:
        assert page.url.startswith("https://docs.pytorch.org/docs/stable/") and page.title


def test_the_page_is_about_the_cause():
    assert find_torch_page("size_changes").title == "Dynamic shapes"
    assert find_torch_page("graph_break_storm").title == "Working with graph breaks"
    assert find_torch_page("cudagraph_skip").title == "CUDAGraph Trees"
    assert find_torch_page("train_eval").title == "Dealing with recompilations"
    assert find_torch_page("recompile_limit").title == "Dealing with recompilations"
    assert find_torch_page("a_rule_of_a_plug_in") is None
