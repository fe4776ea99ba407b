"""Caches, autotuning, CUDA graphs and kernels on the page: grouped, searched, sorted, opened, read in any width."""

import dataclasses
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import BEGIN_NS, expect_totals, expect_value, open_tab
from tests.browser.conftest import SECOND as S
from tests.browser.test_accessibility import check_both_themes
from tests.browser.test_page import SPILLS, expect_cells, first_cells, text
from tests.inside import read_page
from tests.unit.tables_builder import FORWARD, failure, graph, kernel, lookup, refused, tuning

#: The table lays itself out anew in the frame after its width changed.
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
TRAIN = {"function": "train_step", "file": "/home/ada/train.py", "line": 88}
DIFF = "inductor_config[epilogue_fusion]: True -> False"
NO_ROOM = "OutOfMemoryError: out of resource: shared memory, Required: 294912, Hardware limit: 232448."
CHANGED = "static input data pointer changed.\ninput name: primals_4. data pointer changed from 139 to 140."


def shifted(seconds, *events):
    """The events of the builders at so many seconds of the session, a millisecond apart."""
    begin_ns = BEGIN_NS + int(seconds * S)
    return [dataclasses.replace(event, time_ns=begin_ns + at * 1_000_000) for at, event in enumerate(events)]


def tunings():
    params = {"parameters": {"BLOCK_M": 64, "BLOCK_N": 128, "num_warps": 4}}
    return [
        *tuning("1", {"mm": 0.102, "triton_mm_1": 0.1, "triton_mm_2": 0.125, "triton_mm_3": NO_ROOM}, **params),
        *tuning("2", {"bmm": 0.5, "triton_bmm_1": 0.75}, op="bmm", compile_id="0/1", from_cache="local"),
        *tuning("3", {"BLOCK: 32": 0.03}, op="_attn_fwd", tuner="triton_autotune", compile_id=None, precompile_s=None),
    ]


def graphs():
    forward = [
        graph("warmup"),
        graph("record", duration_ms=12.5, graph_id=0, nodes=44, pool_bytes=20 << 20),
        graph("rerecord", duration_ms=2.5, mismatch="StaticInputIdxMismatch", input="3 (primals_4)", reason=CHANGED),
        graph("replays", count=1234),
    ]
    code = {"user_file": "/home/ada/train.py", "user_line": 92, "user_code": "x.add_(1)"}
    reason = "skipping cudagraphs due to mutated inputs (1 instances)"
    return [*forward, graph("skip", reason=reason, **{**TRAIN, **code, "mode": "backward"})]


def lookups():
    return [
        lookup("miss", compile_id="0/0", key="a" * 64, **FORWARD),
        lookup("miss", compile_id="0/1", key="b" * 64, key_diff=[DIFF], nearest_key="a" * 64, **FORWARD),
        lookup("hit", compile_id="0/2", key="b" * 64, saved_s=2.5, **FORWARD),
        lookup("bypass", compile_id="0/0", reason="Unsupported higher order operator: flex_attention", **TRAIN),
    ]


def refusals():
    """Two calls that differ, one of them often, and a stance that skips guards."""
    often, key = refused(actual="7", count=1), {"compile_id": None, "compile_key": "0.refused 7"}
    guards = [failure("x.size()[0]", "tensor_size", 7, entry, **key, actual="7", is_first=True) for entry in (0, 1)]
    unchecked = refused(
        None, None, **dict.fromkeys(("function", "file", "line", "guard_source", "guard_kind", "count")),
        compile_key="0.stance", refused_by="skip_guard_eval_unsafe", ran="unchecked",
    )  # fmt: skip
    raised = refused(actual="9", refused_by="fail_on_recompile", ran="raised")
    return [*guards, often, raised, unchecked, dataclasses.replace(often, count=1233)]


@pytest.fixture
def run(recorded):
    for number in range(3):
        recorded.compile(number, place=FORWARD)
    recorded.add(*shifted(0.5, *tunings()), *shifted(1.0, *lookups()), *shifted(4.0, *graphs()))
    recorded.add(*shifted(4.5, *refusals()))
    recorded.add(
        *shifted(0.2, kernel("triton_poi_0", 0.2), kernel("triton_red_1", 1.5, compile_id="0/1", worker_pid=77))
    )
    return recorded


def open_row(page, tab, row):
    open_tab(page, tab)
    page.locator(".cdiag-row", has_text=row).first.click()


def test_look_ups_stand_by_cache_and_function_and_open_to_why_they_missed(run, open_widget):
    page = open_widget(run.snapshot())
    open_tab(page, "cache_groups")
    row = page.locator(".cdiag-row", has_text=DIFF)
    for column, cell in {"last": "hit", "hits": "1", "misses": "2"}.items():
        expect(row.locator(f'[data-column="{column}"]')).to_have_text(cell)
    row.click()
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward · fx_graph")
    expect(page.locator(".cdiag-lead")).to_have_text("1 hit · 2.5 s saved · 2 misses")
    expect(page.locator('[data-section="reasons"] .cdiag-diff')).to_have_text(f"1x {DIFF}")
    outcomes = page.locator('[data-section="cache_lookups"] .cdiag-outcome')
    expect(outcomes, "the latest first").to_have_text(["hit", "miss", "miss"])
    item = page.locator('[data-section="cache_lookups"] .cdiag-item').nth(1)
    expect(item, "the words of explain_miss").to_contain_text("Inductor's configuration differs")
    expect_value(page, lambda: item.text_content().count(DIFF), 1)
    page.locator(".cdiag-link", has_text="compile 0/1").click()
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward 0/1")
    expect(page.locator('[data-section="cache_lookups"]')).to_contain_text(DIFF)


def test_a_tuning_opens_to_its_choices_by_time_and_why_others_failed(run, open_widget):
    page = open_widget(run.snapshot())
    open_row(page, "tunings", "triton_mm_1")
    expect(page.locator(".cdiag-detail h2")).to_have_text("mm")
    expect(page.locator(".cdiag-lead")).to_have_text("triton_mm_1 0.1 ms per call · 800 ms tuning compile 0/0")
    expect(page.locator(".cdiag-facts")).to_contain_text("vs. runner-up+2.0 % (mm)")
    expect(page.locator(".cdiag-facts")).to_contain_text("vs. extern kernel+2.0 %")
    bars = page.locator('[data-section="choices"] .cdiag-bar-row')
    expect(bars.locator(".cdiag-bar-value")).to_have_text(["0.1 ms", "0.102 ms", "0.125 ms"])
    expect_value(
        page,
        lambda: bars.locator(".cdiag-part").evaluate_all("all => all.map(n => n.offsetWidth)"),
        lambda widths: widths == sorted(widths) and widths[0] > 0.7 * widths[2],
    )
    expect(bars.first.locator(".cdiag-tag")).to_have_text("winner")
    expect(bars.first.locator(".cdiag-bar-more")).to_have_text("triton · BLOCK_M=64; BLOCK_N=128; num_warps=4")
    expect(page.locator('[data-section="failed"] h3')).to_have_text("Why 1 choice failed")
    expect(page.locator('[data-section="failed"] .cdiag-failure code')).to_have_text("triton_mm_3")


def test_tunings_have_totals_and_are_sorted_searched_and_compared_with_extern_kernels(run, open_widget):
    page = open_widget(run.snapshot())
    for key, total in {"tuning_s": "2.1 s", "graph_skips": "1", "graph_replays": "1,234"}.items():
        expect(page.locator(f'[data-total="{key}"]')).to_have_text(re.compile(f"^(≥ )?{re.escape(total)}$"))
    open_tab(page, "tunings")
    for order in (["bmm", "mm", "_attn_fwd"], ["mm", "bmm", "_attn_fwd"]):  # The unknown margin stays last.
        page.click('[data-column="vs. runner-up"] button')
        expect_cells(page, "op", order)
    cells = page.locator(".cdiag-row", has_text="bmm").locator("[data-column]")
    expect_value(page, cells.all_text_contents, lambda found: {"winner", "+50 %"} <= set(found))
    open_row(page, "tunings", "bmm")
    expect(page.locator(".cdiag-lead")).to_contain_text("from the local cache")
    expect(page.locator(".cdiag-facts")).not_to_contain_text("vs. extern kernel")
    page.click(".cdiag-close")
    page.fill(".cdiag-search", "block_m=64 mm_2")
    expect_cells(page, "op", ["mm"])
    expect(page.locator('[data-tab="tunings"] .cdiag-count')).to_have_text("1 of 3")
    expect(page.locator('[data-command="graph_functions"] .cdiag-count')).to_have_text("0 of 2")
    page.fill(".cdiag-search", "primals_4")
    expect(page.locator('[data-tab="graph_functions"] .cdiag-count')).to_have_text("1 of 2")


def test_a_compile_shows_its_tunings_captures_and_kernels(run, open_widget):
    run.add(*shifted(1.5, graph("record", compile_id="0/0")))
    page = open_widget(run.snapshot())
    open_row(page, "compiles", "forward 0/0")
    expect(page.locator('[data-section="tunings"]')).to_contain_text(
        "mm triton_mm_1, 0.1 ms · 4 choices · 800 ms tuning"
    )
    expect(page.locator('[data-section="cudagraphs"] .cdiag-outcome')).to_have_text("record")
    expect(page.locator('[data-section="kernels"] .cdiag-bar-name')).to_have_text("triton_poi_0")
    expect(page.locator('[data-section="kernels"] .cdiag-bar-more')).to_have_text("compiled · triton · subprocess")
    page.click("text=all choices")
    expect(page.locator(".cdiag-detail h2")).to_have_text("mm")


def test_cuda_graphs_stand_by_function_and_open_to_each_action(run, open_widget):
    page = open_widget(run.snapshot())
    open_tab(page, "graph_functions")
    row = page.locator(".cdiag-row", has_text="forward")
    cells = {"state": "replayed", "captures": "2", "re-records": "1", "replays": "1,234"}
    for column, cell in cells.items():
        expect(row.locator(f'[data-column="{column}"]')).to_have_text(cell)
    row.click()
    actions = page.locator('[data-section="cudagraphs"] .cdiag-outcome')
    expect(actions).to_have_text(["replays", "rerecord", "record", "warmup"])
    expect(page.locator('[data-section="cudagraphs"]')).to_contain_text("StaticInputIdxMismatch")
    expect(page.locator('[data-section="cudagraphs"]')).to_contain_text("3 (primals_4)")
    open_row(page, "graph_functions", "train_step")
    expect_value(page, lambda: text(page, ".cdiag-code"), "train.py:92   x.add_(1)")
    expect(page.locator(".cdiag-key.is-recapture")).to_be_visible()


#: The totals of one compile.
BARE = ["compiles", "compile_s", "cache_misses", "own_share", "own_s"]


def test_a_session_without_captures_has_neither_their_signs_nor_their_totals(recorded, open_widget):
    recorded.compile(0)
    page = open_widget(recorded.snapshot())
    expect(page.locator(".cdiag-key.is-miss")).to_be_visible()
    expect(page.locator(".cdiag-key.is-capture")).to_be_hidden()
    shown = page.locator(".cdiag-totals > div:visible [data-total]:visible")
    expect_value(page, lambda: shown.evaluate_all("all => all.map((n) => n.dataset.total)"), BARE)


def test_refused_calls_have_a_total_a_tab_and_their_guards(run, open_widget):
    page = open_widget(run.snapshot())
    expect_totals(page, refused_calls="1,235")
    finding = page.locator('.cdiag-finding[data-rule="refused_calls"]:has-text("ran eagerly")')
    if not finding.is_visible():  # it is alike to another
        page.click(".cdiag-finding-list summary:has-text('more like it')")
    finding.click()
    expect(page.locator('[data-tab="refused_calls"]')).to_have_attribute("aria-selected", "true")
    expect(page.locator('[data-tab="refused_calls"] .cdiag-count')).to_have_text("1 of 3")
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward")
    section = page.locator('[data-section="refused_calls"]')
    expect(section.locator(".cdiag-lead")).to_have_text("ran eagerly 1,234x · eager_on_recompile · set at train.py:12")
    expect(section.locator(".cdiag-entry h4")).to_have_text(["entry 0/0: 1 guard fails", "entry 0/1: 1 guard fails"])
    page.click(".cdiag-chip")
    page.click(".cdiag-close")
    expect_cells(page, "function", ["forward:30", "all functions", "forward:30"])
    page.click('[data-column="times"] button')
    expect_cells(page, "times", ["1,234", "1", "–"])
    page.fill(".cdiag-search", "fail_on_recompile")
    expect_cells(page, "expected → actual", ["4 → 9"])
    page.click('.cdiag-menu:has([data-command="table"]) > button')
    with page.expect_download() as download:
        page.click('[data-command="table"]')
    assert download.value.suggested_filename == "refused_calls.csv"
    assert "fail_on_recompile,raised,1,x.shape[0]" in download.value.path().read_text()
    page.fill(".cdiag-search", "skip_guard")
    page.locator(".cdiag-row").first.click()
    expect(page.locator(".cdiag-detail h2")).to_have_text("skip_guard_eval_unsafe")


def test_a_panel_grows_while_it_is_open(run, open_widget, deliver):
    page = open_widget(run.snapshot())
    run.model.patch()
    open_row(page, "graph_functions", "forward")
    run.add(*shifted(5.0, graph("rerecord", mismatch="CudagraphManagedIdxMismatch")))
    deliver(page, run.patch())
    actions = page.locator('[data-section="cudagraphs"] .cdiag-outcome')
    expect_value(page, lambda: actions.all_text_contents()[:2], ["rerecord", "replays"])
    expect_value(page, lambda: first_cells(page, "re-records")[:1], ["2"])


PANELS = ("cache_groups", "tunings", "graph_functions", "kernels", "refused_calls")


@pytest.mark.long("lays a page out at every width")
def test_the_tabs_fit_any_width_with_and_without_detail(run, open_widget):
    page = open_widget(run.snapshot(), width=600)
    for width in (600, 700, 780, 900, 1000, 1150, 1300):
        page.set_viewport_size({"width": width, "height": 1000})
        for tab in PANELS:
            open_tab(page, tab)
            expect_value(page, SPILLS, [])
            page.locator(".cdiag-row").first.click()
            expect(page.locator(".cdiag-detail")).to_be_visible()
            page.evaluate(TWO_FRAMES)
            expect_value(page, SPILLS, [])
            page.click(".cdiag-close")
        expect_value(page, "document.documentElement.scrollWidth <= innerWidth", True)


def test_every_text_of_the_panels_can_be_read(run, open_widget):
    page = open_widget(run.snapshot())
    for tab in PANELS:
        open_tab(page, tab)
        page.locator(".cdiag-row").first.click()
        expect(page.locator(".cdiag-detail")).to_be_visible()
        check_both_themes(page, rules=["color-contrast"])


def test_a_report_shows_the_panels_and_a_redacted_one_keeps_values_out(run, open_report, tmp_path):
    page = open_report(run.session.report(tmp_path / "report.html"))
    open_row(page, "tunings", "triton_mm_1")
    expect(page.locator(".cdiag-facts")).to_contain_text("bf16[64, 64]")
    path = run.session.report(tmp_path / "redacted.html", redact=True)
    text = read_page(path)
    assert not [s for s in ("bf16[64", "epilogue_fusion", "x.add_(1)", "data pointer", "/home") if s in text]
    page = open_report(path)
    open_row(page, "tunings", "triton_mm_1")
    expect(page.locator(".cdiag-bar-row")).to_have_count(3)
    expect(page.locator(".cdiag-facts")).not_to_contain_text("bf16")
    open_row(page, "graph_functions", "forward")
    expect(page.locator(".cdiag-detail-body")).to_contain_text("StaticInputIdxMismatch")
