"""The dashboard's module in a plain page: patches come in, people search, sort, open, pause."""

import re
import time

import pytest
from playwright.sync_api import expect

from compilediag.events import Collective, Compile, ExportProblem, StackFrame, SymbolicShape
from tests.browser.conftest import BEGIN_NS, expect_totals, expect_value, host_widget, open_tab, read_totals
from tests.browser.many_events import MS
from tests.browser.test_accessibility import SPILLS
from tests.inside import split_patch

HOSTILE = [
    "</script><script>window.bitten = 1</script>",
    "<img src=x onerror='window.bitten = 1'>",
    "<!-- <script>",
    "line\u2028and\u2029paragraph",
    "quotes ' \" ` ${window.bitten = 1} \\",
    "nul \x00 bell \x07 tab\tend",
    "\U0001f525 שלום \u202e evil",
    "x" * 5000,
]


def text(page, selector):
    return page.locator(selector).first.text_content()


def expect_cells(page, column, cells):
    """Wait until the rows show these cells in a column, from top to bottom."""
    expect_value(page, lambda: first_cells(page, column), cells)


def first_cells(page, column):
    cells = page.locator(f'.cdiag-row [data-column="{column}"]')
    rows = cells.evaluate_all("all => all.map(n => [n.closest('.cdiag-row').offsetTop, n.textContent])")
    return [value for _, value in sorted(rows)]


def test_an_empty_session_says_what_is_not_there_yet(recorded, open_widget):
    page = open_widget(recorded.snapshot())
    expect(page.locator(".cdiag-now")).to_have_text("Watching · nothing compiled so far")
    expect(page.locator(".cdiag-totals > div:visible")).to_have_count(0)
    expect(page.locator(".cdiag-tabline")).to_be_hidden()
    expect(page.locator(".cdiag-timeline")).to_be_hidden()


def test_patches_are_shown_as_they_come(recorded, open_widget, deliver):
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    for number in range(3):
        recorded.compile(number, seconds=1.5)
    deliver(page, recorded.patch())
    expect_totals(page, compiles="3", recompiles="2", compile_s="4.5 s", cache_hits="2", cache_misses="1")
    expect_cells(page, "change", ["2 → 3", "1 → 2"])
    raw = page.locator('[data-total="compile_s"]')
    expect_value(page, lambda: float(raw.get_attribute("data-value")), 4.5)


def test_findings_come_by_themselves_while_it_runs(recorded, open_widget, deliver):
    page = open_widget(recorded.snapshot())
    for number in range(4):
        recorded.compile(number)
    while page.locator(".cdiag-step").count() == 0:
        patch = recorded.model.patch()
        if patch is not None:
            deliver(page, patch)
    expect(page.locator(".cdiag-step")).to_contain_text("x.shape")
    expect(page.locator(".cdiag-finding"), "the plan has it").to_have_count(0)


def test_a_compile_in_flight_counts_its_seconds_in_the_browser(recorded, open_widget, deliver):
    recorded.compile(0, seconds=6.0)
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    recorded.in_flight(compile_id="0/1", function="forward", file="/home/me/model.py", line=30)
    deliver(page, recorded.patch())
    expect(page.locator(".cdiag-now-what")).to_have_text("Compiling forward")
    expect(page.locator(".cdiag-flight")).to_have_attribute("title", "model.py:30")
    expect(page.locator(".cdiag-now-phase")).to_have_text("Inductor")
    expect(page.locator(".cdiag-now-before")).to_have_text("of about 6.0 s")
    before = text(page, ".cdiag-now-elapsed")
    page.wait_for_function(
        "(before) => document.querySelector('.cdiag-now-elapsed').textContent !== before", arg=before
    )
    recorded.in_flight()
    deliver(page, recorded.patch())
    expect(page.locator(".cdiag-flight")).to_have_count(0)


def test_a_thread_that_helps_a_compile_gets_no_line_of_its_own(recorded, open_widget):
    recorded.in_flight(compile_id=None, function=None, file=None, line=None, phases=["compile_file"])
    page = open_widget(recorded.snapshot())
    expect(page.locator(".cdiag-now")).to_have_text("Watching · nothing compiled so far")


def test_a_first_compile_has_no_earlier_time_to_be_held_against(recorded, open_widget):
    recorded.in_flight(compile_id="0/0", function="forward", file="/home/me/model.py", line=30)
    page = open_widget(recorded.snapshot())
    expect(page.locator(".cdiag-now-what")).to_have_text("Compiling forward for the first time")
    expect(page.locator(".cdiag-now-before")).to_have_count(0)
    expect(page.locator(".cdiag-progress")).to_have_class(re.compile("is-open"))


def test_the_clock_of_another_machine_does_not_matter(recorded, open_widget, deliver):
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    recorded.in_flight(compile_id="0/0", function="f", file="m.py", line=1, started_ns=time.time_ns() - 3600 * 10**9)
    deliver(page, recorded.patch(), slow_by_s=3600)
    # Without the hour that the clocks differ by.
    expect(page.locator(".cdiag-now-elapsed")).to_have_text(re.compile(r"^\d((?! h).)*$"))


def test_search_filters_every_table_and_dims_the_timeline(recorded, open_widget):
    for number in range(5):
        recorded.compile(number)
    recorded.graph_break("print is not traced", user_code="print(x)")
    page = open_widget(recorded.snapshot())
    page.fill(".cdiag-search", "0/4 SIZE")
    expect_cells(page, "compile", ["forward 0/4"])
    expect(page.locator('[data-tab="recompiles"] .cdiag-count')).to_have_text("1 of 4")
    expect(page.locator('[data-command="graph_breaks"] .cdiag-count')).to_have_text("0 of 1")
    page.fill(".cdiag-search", "no such thing")
    expect(page.locator(".cdiag-hits")).to_contain_text("No hit in ")
    expect(page.locator(".cdiag-note").first).to_have_text("nothing matches")
    page.fill(".cdiag-search", "")
    expect(page.locator(".cdiag-row")).to_have_count(4)


def test_columns_sort_both_ways_and_missing_values_stay_last(recorded, open_widget):
    for number, seconds in enumerate([0.5, 3.0, 1.0]):
        recorded.compile(number, seconds=seconds)
    recorded.add(Compile(time_ns=recorded.clock, compile_id="1/0", function="g", outcome="failed"))
    page = open_widget(recorded.snapshot())
    open_tab(page, "compiles")
    page.click('[data-column="total"] button')
    expect_cells(page, "total", ["3.0 s", "1.0 s", "500 ms", "–"])
    page.click('[data-column="total"] button')
    expect_cells(page, "total", ["500 ms", "1.0 s", "3.0 s", "–"])
    head = page.locator('.cdiag-head [data-column="total"]')
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(head).to_have_text("total ▲")


def test_a_row_opens_the_detail_of_its_compile(recorded, open_widget):
    for number in range(3):
        recorded.compile(number)
    recorded.text("inductor_output_code", "def call(args):\n    return args", compile_id="0/2")
    page = open_widget(recorded.snapshot())
    page.locator(".cdiag-row").first.click()
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward 0/2")
    sections = page.locator(".cdiag-section")
    expect_value(
        page,
        lambda: sections.evaluate_all("all => all.map(n => n.dataset.section)"),
        ["recompiles", "compiles", "cache_lookups", "artifacts", "phases"],
    )
    expect(page.locator(".cdiag-failure")).to_have_count(2)
    page.click(".cdiag-artifact-toggle")
    page.wait_for_selector(".cdiag-pages pre")
    expect_value(page, lambda: text(page, ".cdiag-pages pre"), "def call(args):\n    return args")
    page.click(".cdiag-close")
    expect(page.locator(".cdiag-detail")).to_be_hidden()


def test_the_detail_grows_while_its_compile_goes_on_and_keeps_a_text_open(recorded, open_widget, deliver):
    recorded.compile(0)
    recorded.text("inductor_output_code", "def call(): ...", compile_id="0/0")
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    open_tab(page, "compiles")
    page.locator(".cdiag-row").first.click()
    page.click(".cdiag-artifact-toggle")
    page.wait_for_selector(".cdiag-pages pre")
    recorded.text("dynamo_output_graph", "graph()", compile_id="0/0")  # of a stage that is listed before it
    recorded.graph_break("late news")
    deliver(page, recorded.patch())
    expect(page.locator('[data-section="graph_breaks"]')).to_contain_text("late news")
    expect(page.locator(".cdiag-pages pre")).to_be_visible()


def test_compile_ids_that_restart_after_a_reset_are_distinguished(recorded, open_widget):
    recorded.compile(0, function="before")
    recorded.graph_break("in the first")
    recorded.clock += 10**9
    recorded.compile(0, function="after")
    page = open_widget(recorded.snapshot())
    open_tab(page, "compiles")
    page.locator(".cdiag-row", has_text="after 0/0").click()
    expect(page.locator(".cdiag-detail h2")).to_have_text("after 0/0")
    expect(page.locator('[data-section="graph_breaks"]')).to_have_count(0)
    page.locator(".cdiag-row", has_text="before 0/0").click()
    expect(page.locator('[data-section="graph_breaks"]')).to_contain_text("in the first")


def test_everything_can_be_done_from_the_keyboard(recorded, open_widget):
    for number in range(4):
        recorded.compile(number)
    page = open_widget(recorded.snapshot())
    page.focus('[data-tab="recompiles"]')
    page.keyboard.press("ArrowRight")
    expect(page.locator('[data-tab="compiles"]')).to_have_attribute("aria-selected", "true")
    page.locator('.cdiag-row[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    focused = "[document.activeElement.className, getComputedStyle(document.activeElement).outlineStyle]"
    expect(page.locator(".cdiag-detail h2")).to_have_text("forward 0/2")
    expect(page.locator(".cdiag-detail h2")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".cdiag-detail")).to_be_hidden()
    expect_value(page, focused, ["cdiag-row", "solid"])
    page.keyboard.press("Enter")
    page.focus(".cdiag-search")
    page.keyboard.press("Escape")
    expect(page.locator(".cdiag-detail")).to_be_hidden()
    page.focus(".cdiag-lanes")
    page.keyboard.press("+")
    expect(page.locator(".cdiag-reset")).to_be_visible()
    page.keyboard.press("0")
    expect(page.locator(".cdiag-reset")).to_be_hidden()


def test_a_finding_leads_to_its_evidence(recorded, open_widget):
    for number in range(4):
        recorded.compile(number)
    recorded.graph_break("print is not traced", user_file="/home/me/model.py", user_line=33)
    page = open_widget(recorded.snapshot())
    open_tab(page, "sources")
    page.locator('.cdiag-finding[data-rule="graph_break"]').click()
    expect(page.locator('[data-tab="graph_breaks"]')).to_have_attribute("aria-selected", "true")
    expect(page.locator(".cdiag-detail")).to_be_visible()
    expect(page.locator(".cdiag-chip")).to_have_text(re.compile("^only: "))
    page.click(".cdiag-chip")
    expect(page.locator(".cdiag-chip")).to_be_hidden()


def test_pause_holds_the_display_and_resume_catches_up(recorded, open_widget, deliver):
    recorded.compile(0)
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    page.click(".cdiag-pause")
    for number in (1, 2, 3):
        recorded.compile(number)
        deliver(page, recorded.patch())
    expect(page.locator(".cdiag-now")).to_have_text("Paused · 3 updates waiting")
    expect_totals(page, compiles="1")
    page.fill(".cdiag-search", "forward")
    expect(page.locator('[data-tab="compiles"] .cdiag-count')).to_have_text("1")
    page.click(".cdiag-pause")
    page.wait_for_selector("[data-state=watching]")
    expect_totals(page, compiles="4")


def test_a_reloaded_page_has_everything_again(recorded, open_widget, deliver):
    recorded.compile(0)
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    for number in (1, 2):
        recorded.compile(number)
        deliver(page, recorded.patch())
    again = open_widget(recorded.snapshot())

    def read_later_totals():
        """Lost seconds and findings are computed twice a second at most."""
        if (patch := recorded.model.patch()) is not None:
            deliver(page, patch)
        return read_totals(page)

    expect_value(page, read_later_totals, lambda totals: totals == read_totals(again))
    expect_value(page, lambda: first_cells(again, "compile"), lambda cells: cells == first_cells(page, "compile"))


def test_a_patch_that_was_seen_is_dropped_and_a_missed_one_is_asked_for(recorded, open_widget, deliver):
    recorded.compile(0)
    recorded.model.patch()
    page = open_widget(recorded.snapshot())
    recorded.compile(1)
    missed = recorded.patch()
    recorded.compile(2)
    deliver(page, recorded.patch())
    expect_value(page, "window.host.sent", [{"type": "resync"}])
    expect(page.locator(".cdiag-notice")).to_contain_text("missed")
    deliver(page, recorded.snapshot())
    expect(page.locator(".cdiag-notice")).to_be_hidden()
    expect(page.locator(".cdiag-row")).to_have_count(2)
    deliver(page, {**missed, "totals": {"compiles": 99}})
    expect_totals(page, compiles="3")


def test_a_large_patch_comes_whole_in_parts(recorded, open_widget):
    page = open_widget(recorded.snapshot())
    for number in range(20):
        recorded.compile(number)
        recorded.text("inductor_output_code", f"# {number}\n" * 50, compile_id=f"0/{number}")
    parts = list(split_patch(recorded.patch(), 5_000))
    whole = [part for part in parts if '"functions"' in part]  # a function's document is one row
    assert len(parts) > 10 and max(len(part) for part in parts if part not in whole) < 8_000
    for part in parts:
        page.evaluate("(patch) => window.host.deliver({ type: 'patch', patch })", part)
    page.wait_for_function("() => document.querySelector('[data-total=compiles]').textContent === '20'")
    expect_value(page, "window.host.sent", [])
    expect_totals(page, compiles="20")
    page.locator(".cdiag-row").first.click()
    page.click(".cdiag-artifact-toggle")
    page.wait_for_selector(".cdiag-pages pre")
    expect(page.locator(".cdiag-pages pre")).to_have_text(re.compile("^# 19"))


def test_hostile_text_is_text(recorded, open_widget):
    for number, name in enumerate(HOSTILE):
        recorded.compile(number, function=name, backend=name, fail_reason=name, stack="aa")
        recorded.graph_break(name, user_code=name, explanation=name, hints=[name], user_file=name)
        recorded.text(name, name, compile_id=f"0/{number}")
        recorded.add(*traced(name))
    joined = "".join(HOSTILE)
    recorded.sources(fx_graph_cache=joined)
    recorded.in_flight(compile_id="0/9", function=joined, file=joined, line=1, phases=[joined])
    page = open_widget(recorded.snapshot(), height=2000)
    tabs = page.locator(".cdiag-tab, .cdiag-tab-strip .cdiag-menu-item")
    names = tabs.evaluate_all("all => all.map((tab) => tab.dataset.tab ?? tab.dataset.command)")
    for tab in names:
        open_tab(page, tab)
        for at in range(min(page.locator(".cdiag-row:visible").count(), len(HOSTILE))):
            page.locator(".cdiag-row:visible").nth(at).click()
            expect(page.locator(".cdiag-detail")).to_be_visible()
    open_tab(page, "compiles")
    for at in range(len(HOSTILE)):
        page.locator(".cdiag-row").nth(at).click()
        page.locator(".cdiag-artifact-toggle").first.click()
        page.wait_for_selector(".cdiag-pages pre")
    open_tab(page, "where")
    expect(page.locator(".cdiag-compile")).to_have_count(len(HOSTILE))
    for name in HOSTILE:
        page.fill(".cdiag-search", name[:40])
        expect_value(page, "window.bitten", None)
    expect(page.locator(".cdiag img, .cdiag script")).to_have_count(0)


def traced(name):
    """A row of each kind of rare record, with a name in all its texts."""
    where = {"time_ns": BEGIN_NS, "user_file": name, "user_code": name, "user_stack": "aa", "torch_stack": "aa"}
    yield StackFrame(time_ns=BEGIN_NS, stack="aa", function=name, file=name, line=1, code=name)
    yield SymbolicShape(**where, compile_id="0/0", action=name, symbol=name, source=name, expression=name, value=name)
    yield ExportProblem(**where, problem=name, op=name, reason=name, symbols={name: name}, derivation=[name])
    yield Collective(time_ns=BEGIN_NS, compile_id="0/0", position=0, op=name, outputs=[name])


def test_lone_surrogates_and_nan_reach_the_page(recorded, open_widget, deliver):
    page = open_widget(recorded.snapshot())
    patch = {
        "seq": 1,
        "reset": False,
        "totals": {"compiles": 3, "lost_s": float("nan")},
        "meta": {"title": "lone \ud800 surrogate", "state": "stopped"},
    }
    deliver(page, patch)
    expect_totals(page, compiles="3", lost_s="–")
    expect(page.locator(".cdiag-title")).to_have_text(re.compile("^lone "))


@pytest.mark.long("10 MB of text")
def test_ten_megabytes_of_text_are_paged(recorded, open_widget):
    recorded.compile(0)
    recorded.text(
        "inductor_output_code",
        "".join(f"line {i} {i * 2654435761 % 2**32}\n" for i in range(500_000)),
        compile_id="0/0",
    )
    snapshot = recorded.snapshot()
    page = open_widget(snapshot)
    open_tab(page, "compiles")
    page.locator(".cdiag-row").first.click()
    page.click(".cdiag-artifact-toggle")
    page.wait_for_selector(".cdiag-pages pre")
    length = (
        "() => [...document.querySelectorAll('.cdiag-pages pre')].reduce((sum, n) => sum + n.textContent.length, 0)"
    )
    expect_value(page, length, lambda shown: 60_000 <= shown < 60_100)  # and the rest of a line
    page.click(".cdiag-artifact-foot >> text=show more")
    expect_value(page, length, lambda shown: 120_000 <= shown < 120_200)
    page.click(".cdiag-artifact-foot >> text=show all")
    page.wait_for_selector(".cdiag-artifact-foot >> text=show all", state="hidden")
    expect_value(page, length, lambda shown: shown > 9_000_000)


def test_what_was_not_observed_is_never_shown_as_nothing(recorded, open_widget):
    recorded.sources(fx_graph_cache="torch 9.9 has no ChromiumEventLogger", recompiles="off by detail='lean'")
    page = open_widget(recorded.snapshot())
    expect_totals(page, cache_hits="–", cache_saved_s="–", recompiles="–", lost_s="–", compiles="0")
    expect(page.locator(".cdiag-note").first).to_have_text(
        "not collected: recompiles is unavailable: off by detail='lean'"
    )
    open_tab(page, "cache_groups")
    expect(page.locator(".cdiag-note").first).to_contain_text("torch 9.9 has no ChromiumEventLogger")
    expect(page.locator('[data-tab="cache_groups"] .cdiag-count')).to_have_text("not collected")


def test_what_was_observed_for_a_while_is_a_lower_bound(recorded, open_widget):
    recorded.compile(0)
    recorded.sources(compiles="switched off after 5 errors")
    page = open_widget(recorded.snapshot())
    expect_totals(page, compiles="≥ 1")
    open_tab(page, "compiles")
    expect(page.locator(".cdiag-note").first).to_have_text(
        "not collected: compiles is unavailable: switched off after 5 errors"
    )
    expect(page.locator(".cdiag-row")).to_have_count(1)


def test_an_error_of_the_kernels_side_is_shown_as_text(recorded, open_widget):
    page = open_widget(recorded.snapshot())
    page.evaluate("() => window.host.deliver({ type: 'error', text: 'the disk is full <b>' })")
    page.wait_for_selector(".cdiag-notice")
    expect(page.locator(".cdiag-notice")).to_have_text("the disk is full <b>")


def test_it_fits_any_width(recorded, open_widget):
    for number in range(6):
        recorded.compile(number, function="a_rather_long_function_name_of_somebody")
    recorded.in_flight(
        compile_id="0/9", function="a_rather_long_function_name_of_somebody", file="/home/me/model.py", line=30
    )
    page = open_widget(recorded.snapshot(), width=600)
    for width in (600, 700, 1000, 1300):
        page.set_viewport_size({"width": width, "height": 1000})
        for tab in page.locator(".cdiag-tab:visible").all():
            tab.click()
            expect(tab).to_have_attribute("aria-selected", "true")
            expect_value(page, SPILLS, [])
        expect_value(page, "document.documentElement.scrollWidth <= innerWidth", True)


#: Counts the timers that run.
COUNT_TIMERS = """() => {
  const [set, clear] = [window.setInterval, window.clearInterval];
  window.timers = new Set();
  window.setInterval = (...args) => { const id = set(...args); window.timers.add(id); return id; };
  window.clearInterval = (id) => { window.timers.delete(id); clear(id); };
}"""


def test_a_closed_view_stops_its_timers(recorded, new_page):
    recorded.in_flight(compile_id="0/0", function="forward", file="m.py", line=1)
    page = new_page()
    page.evaluate(COUNT_TIMERS)
    host_widget(page, recorded.snapshot())
    page.wait_for_selector(".cdiag-now-elapsed")
    expect_value(page, "window.timers.size", lambda count: count > 0)
    page.evaluate("() => { window.host.close(); }")
    expect_value(page, "window.timers.size", 0)


@pytest.mark.long("a page of 10,000 rows")
def test_ten_thousand_rows_scroll(recorded, open_widget):
    recorded.add(
        *(
            Compile(time_ns=recorded.clock + n * MS, compile_id=f"0/{n}", function="f", outcome="ok", duration_s=0.001)
            for n in range(10_000)
        )
    )
    page = open_widget(recorded.snapshot())
    open_tab(page, "compiles")
    page.evaluate("() => { const s = document.querySelector('.cdiag-scroller'); s.scrollTop = s.scrollHeight; }")
    page.wait_for_selector('.cdiag-row:has-text("f 0/0")')
    expect_value(page, page.locator(".cdiag-row").count, lambda count: count < 60)
