"""Caches, autotuning, CUDA graphs and kernels on the page: grouped, searched, sorted, opened, read in any width."""

import dataclasses

import pytest

from compilediag.views.report import write_report
from tests.browser.conftest import BEGIN_NS
from tests.browser.conftest import SECOND as S
from tests.browser.test_page import SPILLS, WORST_CONTRAST, first_cells, text
from tests.unit.tables_builder import FORWARD, graph, kernel, lookup, tuning

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


@pytest.fixture
def run(recorded):
    for number in range(3):
        recorded.compile(number, place=FORWARD)
    recorded.add(*shifted(0.5, *tunings()), *shifted(1.0, *lookups()), *shifted(4.0, *graphs()))
    recorded.add(
        *shifted(0.2, kernel("triton_poi_0", 0.2), kernel("triton_red_1", 1.5, compile_id="0/1", worker_pid=77))
    )
    return recorded


def open_tab(page, tab, row):
    page.click(f'[data-tab="{tab}"]')
    page.locator(".cdiag-row", has_text=row).first.click()


def test_look_ups_stand_by_cache_and_function_and_open_to_why_they_missed(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="cache_groups"]')
    row = page.locator(".cdiag-row", has_text=DIFF)
    cells = {name: row.locator(f'[data-column="{name}"]').text_content() for name in ("last", "hits", "misses")}
    assert cells == {"last": "hit", "hits": "1", "misses": "2"}
    row.click()
    assert text(page, ".cdiag-detail h2") == "forward · fx_graph"
    assert text(page, ".cdiag-lead") == "1 hit · 2.5 s saved · 2 misses"
    assert text(page, '[data-section="reasons"] .cdiag-diff') == f"1x {DIFF}"
    outcomes = page.locator('[data-section="cache_lookups"] .cdiag-outcome').all_text_contents()
    assert outcomes == ["hit", "miss", "miss"], "the latest first"
    words = page.locator('[data-section="cache_lookups"] .cdiag-item').nth(1).text_content()
    assert words.count(DIFF) == 1 and "Inductor's configuration differs" in words, "the words of explain_miss"
    page.locator(".cdiag-link", has_text="compile 0/1").click()
    assert text(page, ".cdiag-detail h2") == "forward 0/1"
    assert DIFF in text(page, '[data-section="cache_lookups"]')


def test_a_tuning_opens_to_its_choices_by_time_and_why_others_failed(run, open_widget):
    page = open_widget(run.snapshot())
    open_tab(page, "tunings", "triton_mm_1")
    assert text(page, ".cdiag-detail h2") == "mm"
    assert text(page, ".cdiag-lead") == "triton_mm_1 0.1 ms per call · 800 ms tuning compile 0/0"
    facts = text(page, ".cdiag-facts")
    assert "vs. runner-up+2.0 % (mm)" in facts and "vs. extern kernel+2.0 %" in facts
    bars = page.locator('[data-section="choices"] .cdiag-bar-row')
    assert bars.locator(".cdiag-bar-value").all_text_contents() == ["0.1 ms", "0.102 ms", "0.125 ms"]
    widths = bars.locator(".cdiag-part").evaluate_all("all => all.map(n => n.offsetWidth)")
    assert widths == sorted(widths) and widths[0] > 0.7 * widths[2]
    assert bars.first.locator(".cdiag-tag").text_content() == "winner"
    assert bars.first.locator(".cdiag-bar-more").text_content() == "triton · BLOCK_M=64; BLOCK_N=128; num_warps=4"
    assert text(page, '[data-section="failed"] h3') == "Why 1 choice failed"
    assert text(page, '[data-section="failed"] .cdiag-failure code') == "triton_mm_3"


def test_an_extern_kernel_that_wins_gains_nothing(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="tunings"]')
    cells = page.locator(".cdiag-row", has_text="bmm").locator("[data-column]").all_text_contents()
    assert "winner" in cells and "+50 %" in cells
    open_tab(page, "tunings", "bmm")
    assert "vs. extern kernel" not in text(page, ".cdiag-facts")
    assert "from the local cache" in text(page, ".cdiag-lead")


def test_a_compile_shows_its_tunings_captures_and_kernels(run, open_widget):
    run.add(*shifted(1.5, graph("record", compile_id="0/0")))
    page = open_widget(run.snapshot())
    open_tab(page, "compiles", "forward 0/0")
    assert "mm triton_mm_1, 0.1 ms · 4 choices · 800 ms tuning" in text(page, '[data-section="tunings"]')
    assert text(page, '[data-section="cudagraphs"] .cdiag-outcome') == "record"
    assert text(page, '[data-section="kernels"] .cdiag-bar-name') == "triton_poi_0"
    assert text(page, '[data-section="kernels"] .cdiag-bar-more') == "compiled · triton · subprocess"
    page.click("text=all choices")
    assert text(page, ".cdiag-detail h2") == "mm"


def test_cuda_graphs_stand_by_function_and_open_to_each_action(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="graph_functions"]')
    row = page.locator(".cdiag-row", has_text="forward")
    cells = {
        n: row.locator(f'[data-column="{n}"]').text_content() for n in ("state", "captures", "re-records", "replays")
    }
    assert cells == {"state": "replayed", "captures": "2", "re-records": "1", "replays": "1,234"}
    row.click()
    actions = page.locator('[data-section="cudagraphs"] .cdiag-outcome').all_text_contents()
    assert actions == ["replays", "rerecord", "record", "warmup"]
    assert "StaticInputIdxMismatch" in text(page, '[data-section="cudagraphs"]')
    assert "3 (primals_4)" in text(page, '[data-section="cudagraphs"]')
    open_tab(page, "graph_functions", "train_step")
    assert text(page, ".cdiag-code") == "train.py:92   x.add_(1)"
    assert page.locator(".cdiag-key.is-recapture").is_visible()


def test_a_session_without_captures_has_neither_their_signs_nor_their_tiles(recorded, open_widget):
    recorded.compile(0)
    page = open_widget(recorded.snapshot())
    assert page.locator(".cdiag-key.is-hit").is_visible()
    assert page.locator(".cdiag-key.is-capture").is_hidden()
    assert page.locator(".cdiag-tile:visible").count() == 5


def test_the_totals_have_tiles_of_their_own(run, open_widget, totals):
    shown = totals(open_widget(run.snapshot()))
    assert shown["tuning_runs"].removeprefix("≥ ") == "2"
    assert shown["tuning_s"].removeprefix("≥ ") == "2.1 s"
    assert shown["graph_replays"].removeprefix("≥ ") == "1,234"


def test_the_search_finds_a_tuning_by_what_is_inside_of_it(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="tunings"]')
    page.fill(".cdiag-search", "block_m=64 mm_2")
    assert first_cells(page, "op") == ["mm"]
    assert text(page, '[data-tab="tunings"] .cdiag-count') == "1 of 3"
    assert text(page, '[data-tab="graph_functions"] .cdiag-count') == "0 of 2"
    page.fill(".cdiag-search", "primals_4")
    assert text(page, '[data-tab="graph_functions"] .cdiag-count') == "1 of 2"


def test_tunings_sort_by_margin_with_the_unknown_last(run, open_widget):
    page = open_widget(run.snapshot())
    page.click('[data-tab="tunings"]')
    page.click('[data-column="vs. runner-up"] button')
    assert first_cells(page, "op") == ["bmm", "mm", "_attn_fwd"]
    page.click('[data-column="vs. runner-up"] button')
    assert first_cells(page, "op") == ["mm", "bmm", "_attn_fwd"]


def test_a_panel_grows_while_it_is_open(run, open_widget, deliver):
    page = open_widget(run.snapshot())
    run.model.patch()
    open_tab(page, "graph_functions", "forward")
    run.add(*shifted(5.0, graph("rerecord", mismatch="CudagraphManagedIdxMismatch")))
    deliver(page, run.patch())
    actions = page.locator('[data-section="cudagraphs"] .cdiag-outcome').all_text_contents()
    assert actions[:2] == ["rerecord", "replays"]
    assert first_cells(page, "re-records")[0] == "2"


@pytest.mark.parametrize("width", [600, 700, 780, 900, 1000, 1150, 1300])
def test_the_tabs_fit_any_width_with_and_without_detail(run, open_widget, width):
    page = open_widget(run.snapshot(), width=width)
    for tab in ("cache_groups", "tunings", "graph_functions", "kernels"):
        page.click(f'[data-tab="{tab}"]')
        assert page.evaluate(SPILLS) == [], tab
        page.locator(".cdiag-row").first.click()
        page.evaluate(TWO_FRAMES)
        assert page.evaluate(SPILLS) == [], f"{tab} with its detail"
        page.click(".cdiag-close")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tab", ["cache_groups", "tunings", "graph_functions", "kernels"])
def test_every_text_of_the_panels_can_be_read(run, open_widget, scheme, tab):
    page = open_widget(run.snapshot(), color_scheme=scheme)
    page.click(f'[data-tab="{tab}"]')
    for row in page.locator(".cdiag-row").all():
        row.click()
        assert page.evaluate(WORST_CONTRAST) >= 4.5


def test_a_report_shows_the_panels_and_a_redacted_one_keeps_values_out(run, open_report, tmp_path):
    page = open_report(write_report(run.session.data, tmp_path / "report.html"))
    open_tab(page, "tunings", "triton_mm_1")
    assert "bf16[64, 64]" in text(page, ".cdiag-facts")
    path = write_report(run.session.data, tmp_path / "redacted.html", redact=True)
    assert not [
        s for s in ("bf16[64", "epilogue_fusion", "x.add_(1)", "data pointer", "/home") if s in path.read_text()
    ]
    page = open_report(path)
    open_tab(page, "tunings", "triton_mm_1")
    assert "bf16" not in text(page, ".cdiag-facts") and page.locator(".cdiag-bar-row").count() == 3
    open_tab(page, "graph_functions", "forward")
    assert "StaticInputIdxMismatch" in text(page, ".cdiag-detail-body")
