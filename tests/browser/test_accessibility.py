"""axe-core on every page, light and dark, with what can be opened open: no violation of any impact.

All rules run, those for best practice and the experimental ones too. Contrast of 7 to 1 is not asked for.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT

import compilediag as cd
from tests.browser.conftest import expect_value, open_tab
from tests.inside import ViewModel
from tests.unit.hostile_sessions import make_base
from tests.unit.log_builder import string

RUN = """async (scope, rules) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice", "experimental"];
  const runOnly = rules.length ? { type: "rule", values: rules } : { type: "tag", values: tags };
  const { violations } = await axe.run(scope, { resultTypes: ["violations"], runOnly });
  return violations.flatMap(({ id, impact, nodes }) => nodes.map((node) => [id, impact, node.html.slice(0, 200)]));
}"""
#: Parts whose content is wider than they are.
SPILLS = """() => {
  const parts = ["", "-top", "-totals", "-head", "-main"].map((name) => `.cdiag${name}`).join(", ");
  return [...document.querySelectorAll(parts)].filter((n) => n.scrollWidth > n.clientWidth + 1).map((n) => n.className);
}"""
#: Resolves when the colors of the theme are there.
SETTLED = """async () => {
  const moving = document.getAnimations().filter((animation) => animation instanceof CSSTransition);
  await Promise.allSettled(moving.map((animation) => animation.finished));
}"""
#: axe takes a row for structure. ARIA lets the rows of a grid have the focus, and arrow keys move it.
ALLOWED = ("focus-order-semantics", 'class="cdiag-row')


def find_violations(page, scope="document", rules=()):
    """What axe finds in a page, or in the part of it that is the product's own, by these rules or by all."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate(f"(rules) => ({RUN})({scope}, rules)", list(rules))
    return [node for node in found if not (node[0] == ALLOWED[0] and ALLOWED[1] in node[2])]


def check_both_themes(page, scope="document", rules=()):
    """No violation, light and dark."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_selector(f".cdiag[data-theme={scheme}] >> visible=true")
        page.evaluate(SETTLED)  # on the way from one theme to the other nothing has enough contrast
        assert find_violations(page, scope, rules) == [], scheme


@pytest.fixture
def run(recorded):
    """Compiles with all that a detail shows, a graph break, a failure."""
    for number in range(3):
        recorded.compile(number)
    recorded.graph_break("print is not traced", user_code="print(x)", user_file="/home/me/model.py", user_line=33)
    recorded.compile(3, outcome="failed", fail_type="ValueError", fail_reason="no room")
    recorded.text("inductor_output_code", "def call(args):\n    return args", compile_id="0/2")
    return recorded


def test_every_page_of_a_report(run, open_report, tmp_path):
    page = open_report(run.session.report(tmp_path / "report.html"))
    for tab in page.locator(".cdiag-tab:visible").all():
        tab.click()
        assert find_violations(page) == []
    open_tab(page, "compiles")
    page.locator(".cdiag-row", has_text="0/2").click()
    page.click(".cdiag-artifact-toggle")
    page.wait_for_selector(".cdiag-pages pre")
    for summary in page.locator(".cdiag summary:visible").all():
        summary.click()
    check_both_themes(page)
    page.click(".cdiag-top .cdiag-menu > button")
    check_both_themes(page)
    page.click('[data-command="print"]')
    check_both_themes(page)
    page.click("text=Cancel")
    page.click(".cdiag-to-explorer")
    check_both_themes(page)
    page.locator(".cdiag-guard-link").first.click()
    check_both_themes(page)


def test_ranks(open_report, tmp_path):
    logs = [golden_log(f"torch-2.13-rank{rank}.log.gz") for rank in (0, 1)]
    page = open_report(cd.ingest(logs).report(tmp_path / "report.html"))
    page.click(".cdiag-to-ranks")
    check_both_themes(page)


def test_a_diff(new_page, tmp_path):
    (tmp_path / "empty.log").write_text(string())
    path = cd.diff(tmp_path / "empty.log", golden_log("torch-2.13.log.gz")).report(tmp_path / "diff.html")
    page = new_page(width=420)
    page.goto(path.as_uri())
    expect_value(page, SPILLS, [])
    check_both_themes(page)
    page.locator(".cdiag-row").first.click()
    check_both_themes(page)


#: Opens all that opens below its line, such as a fold in a fold.
OPEN_FOLDS = """() => {
  const closed = "details:not([open]) > summary";
  for (let found; (found = document.querySelector(closed)) !== null; ) found.parentElement.open = true;
  document.querySelectorAll(".cdiag-fold[aria-expanded=false]").forEach((fold) => fold.click());
}"""


@pytest.fixture(scope="module")
def every_table(tmp_path_factory):
    """A session with rows in every table."""
    return cd.load(make_base(tmp_path_factory.mktemp("base") / "base.cdiag"))


def check_targets(page):
    """What is clicked is 24 px large, or has its distance, with all folds open."""
    page.evaluate(OPEN_FOLDS)
    assert find_violations(page, rules=["target-size"]) == []


@pytest.mark.parametrize("width", [400, 1100])
def test_every_target_of_a_report_is_large_enough(width, every_table, open_report, tmp_path):
    page = open_report(every_table.report(tmp_path / "report.html"), width=width)
    check_targets(page)
    tabs = page.eval_on_selector_all("[data-tab]", "tabs => tabs.map((tab) => tab.dataset.tab)")
    assert len(tabs) > 10
    for tab in tabs:
        open_tab(page, tab)
        rows = page.locator(".cdiag-row:visible")
        if rows.count():
            rows.first.click()
            page.wait_for_selector(".cdiag-detail")
        check_targets(page)
    page.click(".cdiag-to-ranks")
    check_targets(page)
    page.go_back()
    page.click(".cdiag-to-explorer")
    check_targets(page)
    page.locator(".cdiag-guard-link").first.click()
    check_targets(page)


@pytest.mark.parametrize("width", [400, 1100])
def test_every_target_of_the_other_pages_is_large_enough(
    width, every_table, open_widget, open_report, new_page, tmp_path
):
    page = open_widget(ViewModel(every_table.data).snapshot(), is_full=False, width=width)
    check_targets(page)
    page.click(".cdiag-size")
    check_targets(page)
    page = open_report(cd.ingest(golden_log("vllm-0.33.0.log.gz")).report(tmp_path / "vllm.html"), width=width)
    page.click(".cdiag-to-vllm")
    check_targets(page)
    page = new_page(width=width)
    diff = cd.diff(golden_log("torch-2.13.log.gz"), every_table.path)
    page.goto(diff.report(tmp_path / "diff.html").as_uri())
    page.locator(".cdiag-row").first.click()
    check_targets(page)


def golden_log(name: str) -> Path:
    return Path(__file__).resolve().parents[1] / "golden" / name
