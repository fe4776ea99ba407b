"""The page of models that vLLM compiles, in the report of a log that vLLM wrote."""

from pathlib import Path

from playwright.sync_api import expect

import compilediag as cd
from tests.browser.conftest import expect_value, open_tab

[LOG] = sorted((Path(__file__).resolve().parents[1] / "golden").glob("vllm-*.log.gz"))


def test_a_report_shows_each_piece_for_each_range(open_report, tmp_path):
    page = open_report(cd.ingest(LOG).report(tmp_path / "report.html"))
    open_tab(page, "vllm_compiles")
    expect(page.get_by_text("65 to 256").first).to_be_visible()
    page.get_by_text("vLLM: 24 compiles ›").click()
    expect_value(page, "location.hash", "#vllm")
    parts = page.locator('[data-section="vllm-part"]')
    expect(parts.locator("h3")).to_have_text(["backbone", "eagle_head"])
    expect(parts.first).to_contain_text("4 pieces · 4 sizes and ranges · 16 compiles")
    expect(parts.first.locator(".cdiag-facts")).to_contain_text("example::attention")
    table = parts.first.locator(".cdiag-vllm-pieces")
    heads = ["piece", "calls", "1CUDA graph", "8CUDA graph", "1 to 64", "65 to 256", "all"]
    expect(table.locator("thead th")).to_have_text(heads)
    expect(table.locator("tbody tr")).to_have_count(4)
    cells = ["submod_0", "3", "9.0 ms", "3.0 ms", "0 s", "2.0 ms", "14 ms"]
    expect(table.locator("tbody tr").first.locator("td")).to_have_text(cells)
    graph = parts.first.locator(".cdiag-artifact", has_text="vllm_submod_0")
    graph.locator(".cdiag-artifact-toggle").click()
    expect(graph.locator("pre")).to_contain_text("torch._C._nn.linear")
    page.click(".cdiag-vllm >> text=dashboard")
    expect(page.locator(".cdiag-to-vllm")).to_be_visible()
    expect(page.locator(".cdiag-to-ranks")).to_be_hidden()
