"""What trace records tell, on the page: where compiles come from, failures, shapes, exports, graphs beside code."""

from pathlib import Path

import pytest

import compilediag as cd
from compilediag.events import Compile, StackFrame
from compilediag.views.model import ViewModel
from compilediag.views.report import write_report
from tests.browser.conftest import BEGIN_NS
from tests.browser.test_page import SPILLS, WORST_CONTRAST, text

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


@pytest.fixture(scope="module")
def session():
    """`session(NAME, ...)`: the session of golden logs."""
    made = {}

    def of(*names):
        if names not in made:
            made[names] = cd.ingest([GOLDEN / f"torch-2.13-{name}.log.gz" for name in names], strict=True)
        return made[names]

    return of


def chips(page):
    return page.locator(".cdiag-where .cdiag-compile:visible")


def called(recorded, number, *frames, **columns):
    """A compile of `step`, called through `frames`."""
    places = [*frames, ("/home/ada/train.py", 30 + number, "step")]
    keys = ["/".join(f"{file}:{line}" for file, line, _ in places[: i + 1]) for i in range(len(places))]
    for i, (file, line, function) in enumerate(places):
        details = {"stack": keys[i], "caller": keys[i - 1] if i else None, "code": f"{function}()" if i else None}
        recorded.add(StackFrame(time_ns=BEGIN_NS, file=file, line=line, function=function, **details))
    own = {"function": "step", "file": "/home/ada/train.py", "line": 30 + number, "outcome": "ok", "duration_s": 1.5}
    recorded.add(Compile(time_ns=BEGIN_NS + number, compile_id=f"{number}/0", stack=keys[-1], **{**own, **columns}))


MAIN = ("/home/ada/train.py", 99, "<module>")
TORCH = [("/usr/lib/python3/site-packages/torch/nn/modules/module.py", n, "_call_impl") for n in (10, 20, 30)]
EPOCH, EVALUATE = ("/home/ada/train.py", 60, "epoch"), ("/home/ada/train.py", 70, "evaluate")


@pytest.fixture
def run(recorded):
    called(recorded, 0, MAIN, EPOCH, *TORCH, restart_reasons=["a break"])
    called(recorded, 1, MAIN, EPOCH)
    called(recorded, 2, MAIN, EVALUATE, outcome="failed", fail_type="ValueError", fail_reason="no\nroom", user_line=31)
    return recorded


def test_compiles_stand_where_they_were_called_from(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="where"]')
    assert chips(page).count() == 3
    assert chips(page).evaluate_all("all => all.map((chip) => [chip.dataset.outcome, chip.textContent])") == [
        ["restarted", "↻ 0/0 1.5 s"],
        ["ok", "✓ 1/0 1.5 s"],
        ["failed", "✕ 2/0 1.5 s"],
    ]
    ways = page.locator(".cdiag-way").evaluate_all("all => all.map((way) => way.textContent)")
    assert ways[0].startswith("train.py:60") and ways[0].endswith("2 compiles · 3.0 s") and len(ways) == 4
    # What all have in common stands once; torch's frames are folded, but for one at which the ways part.
    assert page.locator(".cdiag-where .cdiag-frame-line:visible", has_text="<module>").count() == 1
    assert page.locator(".cdiag-frame-line:visible", has_text="_call_impl").count() == 1
    page.click("text=… 2 frames of torch or Python")
    assert page.locator(".cdiag-frame-line:visible", has_text="_call_impl").count() == 3


def test_a_branch_closes_and_stays_closed_while_compiles_come(run, open_widget, deliver):
    run.model.patch()
    page = open_widget(run.snapshot())
    page.click('[data-tab="where"]')
    page.locator(".cdiag-way", has_text="epoch").press("Enter")
    assert chips(page).count() == 1
    called(run, 3, MAIN, EVALUATE)
    deliver(page, run.patch())
    assert chips(page).count() == 2
    page.locator(".cdiag-way", has_text="epoch").press("Enter")
    assert chips(page).count() == 4


def test_a_compile_opens_from_where_it_was_called(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="where"]')
    chips(page).last.click()
    assert text(page, ".cdiag-detail h2") == "step 2/0" and chips(page).last.get_attribute("aria-pressed") == "true"
    stack = page.locator('[data-section="stacks"] .cdiag-frame-line').all_text_contents()
    assert stack == ["train.py:99<module>", "train.py:70evaluateevaluate()", "train.py:32stepstep()"]


def test_the_search_finds_a_compile_by_its_callers(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="where"]')
    page.fill(".cdiag-search", "train.py:70 evaluate")
    page.wait_for_function("document.querySelectorAll('.cdiag-where .cdiag-compile').length === 1")
    assert chips(page).text_content() == "✕ 2/0 1.5 s"
    page.fill(".cdiag-search", "nowhere")
    page.wait_for_selector(".cdiag-where .cdiag-note >> text=nothing matches")
    assert chips(page).count() == 0


def test_failures_and_what_began_again_have_a_tab_of_their_own(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="failures"]')
    rows = page.locator(".cdiag-row")
    page.wait_for_function("document.querySelectorAll('.cdiag-row').length === 2")
    assert text(page, '[data-tab="failures"] .cdiag-count') == "2"
    assert "failed" in rows.first.text_content() and "no room" in rows.first.text_content()
    assert "restarted once" in rows.last.text_content() and "a break" in rows.last.text_content()


def test_symbolic_shapes_with_both_stacks(session, open_widget):
    page = open_widget(ViewModel(session("shapes").data).snapshot())
    page.click('[data-tab="symbolic_shapes"]')
    page.fill(".cdiag-search", "specialized")
    page.locator(".cdiag-row").click()
    item = page.locator('[data-section="symbolic_shapes"] .cdiag-item', has_text="specialized")
    assert "s77 = 5" in item.text_content() and "range_refined_to_singleton" in item.text_content()
    item.locator("summary", has_text="torch's stack").click()
    assert item.locator(".cdiag-fold:visible").count() >= 1


def test_problems_of_an_export(session, open_widget):
    page = open_widget(ViewModel(session("export").data).snapshot())
    page.click('[data-tab="export_problems"]')
    assert page.locator(".cdiag-row").count() == 3
    page.locator(".cdiag-row", has_text="data dependent").click()
    assert text(page, ".cdiag-detail h2") == "u4 > 2"
    detail = page.locator(".cdiag-detail-body")
    assert "if c.item() > 2:" in detail.text_content() and "u4 > 2 = gt(u4, 2)" in detail.text_content()
    assert detail.locator("summary").count() == 2


def test_collectives_of_two_ranks(session, open_widget):
    page = open_widget(ViewModel(session("rank0", "rank1").data).snapshot())
    page.click('[data-tab="collectives"]')
    assert page.locator(".cdiag-row").count() == 8
    page.locator(".cdiag-row", has_text="all_gather").first.click()
    items = page.locator('[data-section="collectives"] .cdiag-item').all_text_contents()
    assert len(items) == 4 and "all_reduce_" in items[0] and "float32 8" in items[2]


def test_rare_tabs_are_there_with_rows_only(run, open_widget):
    page = open_widget(run.snapshot())
    for name in ("export_problems", "collectives"):
        assert not page.locator(f'[data-tab="{name}"]').is_visible()


def open_graphs(page):
    page.click('[data-tab="compiles"]')
    page.locator(".cdiag-row").last.click()
    page.click(".cdiag-to-provenance")
    page.wait_for_selector(".cdiag-pane-lines .is-linked")


def test_a_line_of_a_graph_lights_what_it_became(session, open_report, tmp_path):
    page = open_report(write_report(session("provenance").data, tmp_path / "r.html"))
    open_graphs(page)
    lit = "all => all.map((line) => line.textContent.trim())"
    page.locator('[data-pane="post"] .is-linked', has_text="aten.mm").hover()
    assert page.locator('[data-pane="pre"] .is-lit').evaluate_all(lit)[0].startswith("matmul:")
    code = page.locator('[data-pane="code"] .is-lit').evaluate_all(lit)
    assert code == [
        "# [Provenance debug handles] extern_kernels.mm:1",
        "extern_kernels.mm(primals_1, primals_2, out=buf0)",
    ]
    assert "x @ w" in text(page, ".cdiag-provenance-user")
    # From the code back, with the keyboard; the partners come into view.
    call = page.locator('[data-pane="code"] .is-linked', has_text="cpp_fused_add_relu_sum_threshold_backward_0(buf0")
    call.focus()
    names = [line.partition(":")[0] for line in page.locator('[data-pane="post"] .is-lit').evaluate_all(lit)]
    assert names == ["relu", "add", "sum_1", "le"]
    page.keyboard.press("Escape")
    assert page.locator(".cdiag-detail").is_visible() and not page.locator(".cdiag-provenance").is_visible()


def test_a_graph_that_torch_did_not_trace_still_shows_the_users_lines(session, open_report, tmp_path):
    page = open_report(write_report(session("provenance").data, tmp_path / "r.html"))
    open_graphs(page)
    page.click("text=graph 2 of 2")
    page.wait_for_selector("text=torch did not trace the nodes of this graph")
    page.locator('[data-pane="code"] .is-linked', has_text="cpp_fused_expand_threshold_backward_unsqueeze_0(").click()
    assert "(torch.relu(x @ w) + 1).sum(-1)" in text(page, ".cdiag-provenance-user")


def test_texts_stand_in_the_order_of_the_pipeline_and_code_is_coloured(session, open_report, tmp_path):
    page = open_report(write_report(session("provenance").data, tmp_path / "r.html"))
    page.click('[data-tab="compiles"]')
    page.locator(".cdiag-row").last.click()
    section = page.locator('[data-section="artifacts"]')
    stages = section.locator("h4").all_text_contents()
    assert stages[0] == "Dynamo" and stages.index("AOTAutograd") < stages.index("Generated code")
    section.locator(".cdiag-artifact-toggle", has_text="inductor_output_code").first.click()
    pages = section.locator(".cdiag-pages:visible pre")
    pages.wait_for()
    kinds = pages.evaluate("node => [...new Set([...node.children].map((span) => span.className))].sort()")
    assert kinds == ["is-comment", "is-number", "is-text", "is-word"]
    # What is between three quotes is C++ there: `#pragma` is no comment's whole line, `auto` a word.
    words = pages.evaluate("node => [...node.querySelectorAll('.is-word')].map((span) => span.textContent)")
    assert {"import", "def", "auto", "static_cast", "const"} <= set(words)
    shown = pages.evaluate("node => [Number(node.closest('.cdiag-artifact').dataset.artifact), node.textContent]")
    assert shown[1] == session("provenance").artifact(shown[0])


def test_a_link_can_be_followed_and_nothing_else_can(recorded, open_widget):
    recorded.compile(0)
    recorded.text("link: profile", "https://example.org/p?a=1", compile_id="0/0")
    recorded.text("link: bad", "javascript:window.bitten=1", compile_id="0/0")
    page = open_widget(recorded.snapshot())
    page.click('[data-tab="compiles"]')
    page.locator(".cdiag-row").click()
    for toggle in page.locator(".cdiag-artifact-toggle").all():
        toggle.click()
    page.wait_for_function("document.querySelectorAll('.cdiag-pages pre').length === 2")
    links = page.locator(".cdiag-pages a")
    assert links.count() == 1 and links.get_attribute("href") == "https://example.org/p?a=1"
    assert links.get_attribute("rel") == "noopener noreferrer"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_at_any_width(session, open_report, tmp_path, scheme):
    page = open_report(write_report(session("provenance").data, tmp_path / "r.html"), color_scheme=scheme)
    open_graphs(page)
    page.locator(".is-linked").first.focus()
    for width in (1300, 700):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SPILLS) == []
        assert page.evaluate(WORST_CONTRAST) >= 4.5
    page.click('[data-tab="where"]')
    assert page.evaluate(WORST_CONTRAST) >= 4.5 and page.evaluate(SPILLS) == []
