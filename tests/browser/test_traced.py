"""What trace records tell, on the page: where compiles come from, failures, shapes, exports, graphs beside code."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

import compilediag as cd
from compilediag.events import Compile, StackFrame, TracedFunction
from tests.browser.conftest import BEGIN_NS, expect_value, open_tab
from tests.browser.test_accessibility import SPILLS, check_both_themes
from tests.unit.session_builder import page_of

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
    open_tab(page, "where")
    expect(chips(page)).to_have_count(3)
    expect(chips(page)).to_have_text(["↻ 0/0 1.5 s", "✓ 1/0 1.5 s", "✕ 2/0 1.5 s"])
    for chip, outcome in zip(chips(page).all(), ("restarted", "ok", "failed"), strict=True):
        expect(chip).to_have_attribute("data-outcome", outcome)
    ways = page.locator(".cdiag-way")
    expect(ways).to_have_count(4)
    expect(ways.first).to_have_text(re.compile(r"^train\.py:60.*2 compiles · 3\.0 s$", re.DOTALL))
    # What all have in common stands once; torch's frames are folded, but for one at which the ways part.
    expect(page.locator(".cdiag-where .cdiag-frame-line:visible", has_text="<module>")).to_have_count(1)
    expect(page.locator(".cdiag-frame-line:visible", has_text="_call_impl")).to_have_count(1)
    page.click("text=… 2 frames of torch or Python")
    expect(page.locator(".cdiag-frame-line:visible", has_text="_call_impl")).to_have_count(3)
    boxes = [way.bounding_box() for way in page.locator(".cdiag-branches > li").all()]
    tops = [box["y"] for box in boxes if box is not None]
    assert len(set(tops)) == len(boxes) == 4, "branches are below each other"
    page.fill(".cdiag-search", "train.py:70 evaluate")
    page.wait_for_function("document.querySelectorAll('.cdiag-where .cdiag-compile').length === 1")
    expect(chips(page)).to_have_text("✕ 2/0 1.5 s")
    page.fill(".cdiag-search", "nowhere")
    page.wait_for_selector(".cdiag-where .cdiag-note >> text=nothing matches")
    expect(chips(page)).to_have_count(0)


def test_a_compile_opens_from_where_it_was_called_and_a_restart_is_no_failure(run, open_widget):
    page = open_widget(run.snapshot())
    open_tab(page, "where")
    chips(page).last.click()
    expect(page.locator(".cdiag-detail h2")).to_have_text("step 2/0")
    expect(chips(page).last).to_have_attribute("aria-pressed", "true")
    stack = page.locator('[data-section="stacks"] .cdiag-frame-line')
    expect(stack).to_have_text(["train.py:99<module>", "train.py:70evaluateevaluate()", "train.py:32stepstep()"])
    open_tab(page, "failures")
    expect(page.locator(".cdiag-row")).to_have_count(1)
    expect(page.locator('[data-tab="failures"] .cdiag-count')).to_have_text("1")
    for part in ("failed", "no room"):
        expect(page.locator(".cdiag-row")).to_contain_text(part)
    open_tab(page, "compiles")
    expect(page.locator(".cdiag-row", has_text="restarted once")).to_have_count(1)
    for name in ("export_problems", "collectives"):  # Tabs without rows are in the menu.
        expect(page.locator(f'[data-tab="{name}"]')).to_be_hidden()


def test_a_branch_closes_and_stays_closed_while_compiles_come(run, open_widget, deliver):
    run.model.patch()
    page = open_widget(run.snapshot())
    open_tab(page, "where")
    page.locator(".cdiag-way", has_text="epoch").press("Enter")
    expect(chips(page)).to_have_count(1)
    called(run, 3, MAIN, EVALUATE)
    deliver(page, run.patch())
    expect(chips(page)).to_have_count(2)
    page.locator(".cdiag-way", has_text="epoch").press("Enter")
    expect(chips(page)).to_have_count(4)


KERNEL = [
    ("/usr/lib/python3.11/asyncio/base_events.py", 608, "run_forever"),
    ("/venv/lib/python3.11/site-packages/ipykernel/ipkernel.py", 450, "do_execute"),
    ("/venv/lib/python3.11/site-packages/IPython/core/interactiveshell.py", 3577, "run_code"),
]


def test_frames_of_the_kernel_are_left_out_and_can_be_shown(recorded, open_widget):
    called(recorded, 0, *KERNEL, ("Cell In[3]", 1, "<module>"), EPOCH)
    called(recorded, 1, *KERNEL, ("Cell In[4]", 1, "<module>"))
    page = open_widget(recorded.snapshot())
    open_tab(page, "where")
    frames = page.locator(".cdiag-where .cdiag-frame-line:visible")
    expect(page.locator(".cdiag-way").first).to_have_text(re.compile(r"(?<!Cell )In\[3\]:1"))
    expect(frames.filter(has_text="run_code")).to_have_count(0)
    page.click("text=show 3 frames above your code")
    expect(frames.filter(has_text="run_code")).to_have_count(1)
    page.click("text=hide the frames above your code")
    expect(frames.filter(has_text="run_code")).to_have_count(0)
    chips(page).first.click()
    stack = page.locator('[data-section="stacks"]')
    expect(stack.locator(".cdiag-frame-line:visible").first).to_have_text(re.compile(r"(?<!Cell )In\[3\]:1"))
    stack.locator("text=… 3 frames above your code").click()
    expect(stack.locator(".cdiag-frame-line:visible", has_text="run_code")).to_have_count(1)


def test_symbolic_shapes_with_both_stacks(session, open_widget):
    page = open_widget(page_of(session("shapes")))
    open_tab(page, "symbolic_shapes")
    page.fill(".cdiag-search", "specialized")
    page.locator(".cdiag-row").click()
    item = page.locator('[data-section="symbolic_shapes"] .cdiag-item', has_text="specialized")
    expect(item).to_contain_text("s77 = 5")
    expect(item).to_contain_text("range_refined_to_singleton")
    item.locator("summary", has_text="torch's stack").click()
    expect(item.locator(".cdiag-fold:visible").first).to_be_visible()


def test_problems_of_an_export(session, open_widget):
    page = open_widget(page_of(session("export")))
    open_tab(page, "export_problems")
    expect(page.locator(".cdiag-row")).to_have_count(3)
    page.locator(".cdiag-row", has_text="data dependent").click()
    expect(page.locator(".cdiag-detail h2")).to_have_text("u4 > 2")
    detail = page.locator(".cdiag-detail-body")
    expect(detail).to_contain_text("if c.item() > 2:")
    expect(detail).to_contain_text("u4 > 2 = gt(u4, 2)")
    expect(detail.locator("summary")).to_have_count(2)


def test_collectives_of_two_ranks(session, open_widget):
    page = open_widget(page_of(session("rank0", "rank1")))
    open_tab(page, "collectives")
    expect(page.locator(".cdiag-row")).to_have_count(8)
    page.locator(".cdiag-row", has_text="all_gather").first.click()
    items = page.locator('[data-section="collectives"] .cdiag-item')
    expect(items).to_have_count(4)
    expect(items.first).to_contain_text("all_reduce_")
    expect(items.nth(2)).to_contain_text("float32 8")


def test_what_dynamo_traced_is_a_table_if_the_session_has_it(recorded, open_widget, deliver):
    page = open_widget(recorded.snapshot())
    expect(page.locator('[data-tab="trace_functions"]')).to_have_count(0)
    for name, seconds in (("forward", 0.25), ("norm", 1.5)):
        at = {"function": name, "file": "/home/ada/train.py", "line": 30, "compile_id": "0/0"}
        recorded.add(TracedFunction(time_ns=BEGIN_NS, **at, count=2, own_s=seconds, total_s=2.0, stack=name))
    deliver(page, recorded.patch())
    open_tab(page, "trace_functions")
    expect(page.locator(".cdiag-row [data-column=function]")).to_have_text(["norm", "forward"])


def open_graphs(page):
    open_tab(page, "compiles")
    page.locator(".cdiag-row").last.click()
    page.click(".cdiag-to-provenance")
    page.wait_for_selector(".cdiag-pane-lines .is-linked")


def test_a_line_of_a_graph_lights_what_it_became(session, open_report, tmp_path):
    page = open_report(session("provenance").report(tmp_path / "r.html"))
    open_graphs(page)
    lit = lambda pane: page.locator(f'[data-pane="{pane}"] .is-lit')  # noqa: E731
    page.locator('[data-pane="post"] .is-linked', has_text="aten.mm").hover()
    expect(lit("pre").first).to_have_text(re.compile(r"^\s*matmul:"))
    code = ["# [Provenance debug handles] extern_kernels.mm:1", "extern_kernels.mm(primals_1, primals_2, out=buf0)"]
    expect(lit("code")).to_have_text(code)
    expect(page.locator(".cdiag-provenance-user")).to_contain_text("x @ w")
    # From the code back, with the keyboard; the partners come into view.
    call = page.locator('[data-pane="code"] .is-linked', has_text="cpp_fused_add_relu_sum_threshold_backward_0(buf0")
    call.focus()
    expect(lit("post")).to_have_text([re.compile(rf"^\s*{name}:") for name in ("relu", "add", "sum_1", "le")])
    page.keyboard.press("Escape")
    expect(page.locator(".cdiag-detail")).to_be_visible()
    expect(page.locator(".cdiag-provenance")).to_be_hidden()


def test_a_graph_that_torch_did_not_trace_still_shows_the_users_lines(session, open_report, tmp_path):
    page = open_report(session("provenance").report(tmp_path / "r.html"))
    open_graphs(page)
    page.click("text=graph 2 of 2")
    page.wait_for_selector("text=torch did not trace the nodes of this graph")
    page.locator('[data-pane="code"] .is-linked', has_text="cpp_fused_expand_threshold_backward_unsqueeze_0(").click()
    expect(page.locator(".cdiag-provenance-user")).to_contain_text("(torch.relu(x @ w) + 1).sum(-1)")


def test_texts_stand_in_the_order_of_the_pipeline_and_code_is_coloured(session, open_report, tmp_path):
    page = open_report(session("provenance").report(tmp_path / "r.html"))
    open_tab(page, "compiles")
    page.locator(".cdiag-row").last.click()
    section = page.locator('[data-section="artifacts"]')
    expect_value(
        page,
        section.locator("h4").all_text_contents,
        lambda stages: (
            stages[:1] == ["Dynamo"]
            and [stage for stage in stages if stage in ("AOTAutograd", "Generated code")]
            == ["AOTAutograd", "Generated code"]
        ),
    )
    section.locator(".cdiag-artifact-toggle", has_text="inductor_output_code").first.click()
    pages = section.locator(".cdiag-pages:visible pre")
    pages.wait_for()
    kinds = "node => [...new Set([...node.children].map((span) => span.className))].sort()"
    expect_value(page, lambda: pages.evaluate(kinds), ["is-comment", "is-number", "is-text", "is-word"])
    # What is between three quotes is C++ there: `#pragma` is no comment's whole line, `auto` a word.
    words = "node => [...node.querySelectorAll('.is-word')].map((span) => span.textContent)"
    least = {"import", "def", "auto", "static_cast", "const"}
    expect_value(page, lambda: pages.evaluate(words), lambda found: least <= set(found))
    shown = "node => [Number(node.closest('.cdiag-artifact').dataset.artifact), node.textContent]"
    expect_value(
        page, lambda: pages.evaluate(shown), lambda found: found[1] == session("provenance").artifact(found[0])
    )


def test_a_link_can_be_followed_and_nothing_else_can(recorded, open_widget):
    recorded.compile(0)
    recorded.text("link: profile", "https://example.org/p?a=1", compile_id="0/0")
    recorded.text("link: bad", "javascript:window.bitten=1", compile_id="0/0")
    page = open_widget(recorded.snapshot())
    open_tab(page, "compiles")
    page.locator(".cdiag-row").click()
    for toggle in page.locator(".cdiag-artifact-toggle").all():
        toggle.click()
    page.wait_for_function("document.querySelectorAll('.cdiag-pages pre').length === 2")
    links = page.locator(".cdiag-pages a")
    expect(links).to_have_count(1)
    expect(links).to_have_attribute("href", "https://example.org/p?a=1")
    expect(links).to_have_attribute("rel", "noopener noreferrer")


def test_every_text_can_be_read_at_any_width(session, open_report, tmp_path):
    page = open_report(session("provenance").report(tmp_path / "r.html"))
    open_graphs(page)
    page.locator(".is-linked").first.focus()
    for width in (1300, 700):
        page.set_viewport_size({"width": width, "height": 900})
        expect_value(page, SPILLS, [])
    check_both_themes(page, rules=["color-contrast"])
    open_tab(page, "where")
    expect(chips(page).first).to_be_visible()
    check_both_themes(page, rules=["color-contrast"])
    expect_value(page, SPILLS, [])
