"""The frame of the dashboard: its head in every state, how much it shows, the search, its keys, and what it costs."""

import re
import time

from playwright.sync_api import expect

from compilediag.events import Recompile, SourceStatus
from tests.browser.conftest import BEGIN_NS, MOST_MS, Flight, expect_value
from tests.browser.plan_builder import make_finding, make_plan
from tests.unit.tables_builder import add_keys

PLACE = {"function": "forward", "file": "/home/me/model.py", "line": 30}
MINUTE_NS = 60 * 10**9
#: The words of a search that are marked.
MARKED = "() => [...(CSS.highlights.get('cdiag-hit') ?? [])].map(String)"


def size_of(page):
    return page.get_attribute(".cdiag", "data-size")


def height_of(page):
    return page.locator(".cdiag").bounding_box()["height"]


def test_a_notebook_shows_one_line_until_something_recompiles_then_the_answer(recorded, open_widget, deliver):
    recorded.compile(0)
    page = open_widget(recorded.snapshot(), is_full=False)
    recorded.model.patch()
    assert size_of(page) == "line" and height_of(page) == 46
    expect(page.locator(".cdiag-plan, .cdiag-timeline, .cdiag-search")).to_have_count(0)
    for number in range(1, 4):
        recorded.compile(number)
    deliver(page, recorded.patch())
    expect(page.locator(".cdiag")).to_have_attribute("data-size", "compact")
    expect(page.locator(".cdiag-plan")).to_be_visible()
    expect(page.locator(".cdiag-main")).to_be_hidden()


def test_the_size_is_changed_by_button_and_by_key(recorded, open_widget):
    for number in range(3):
        recorded.compile(number)
    page = open_widget(recorded.snapshot(), is_full=False)
    page.click(".cdiag-size")
    expect(page.locator(".cdiag")).to_have_attribute("data-size", "full")
    expect(page.locator(".cdiag-row").first).to_be_visible()
    expect(page.locator(".cdiag-size")).to_have_accessible_name("Compact")
    page.keyboard.press("e")
    expect(page.locator(".cdiag")).to_have_attribute("data-size", "compact")
    page.keyboard.press("e")
    page.click(".cdiag-search")
    page.keyboard.type("e")
    expect(page.locator(".cdiag"), "a letter in a field is no key").to_have_attribute("data-size", "full")


def test_a_recompile_that_runs_shows_its_cause_first_and_others_are_a_list(recorded, open_widget):
    recorded.compile(0, seconds=6.0)
    values = {"guard_source": "x.size()[0]", "guard_kind": "tensor_size", "expected": "8", "actual": "6"}
    cause = Recompile(time_ns=recorded.clock, compile_id="0/1", **PLACE, **values)
    recorded.add(cause)
    key = add_keys(cause).compile_key
    began = time.time_ns() - MINUTE_NS
    recorded.in_flight(compile_id="0/1", compile_key=key, started_ns=began, **PLACE)
    other = {"function": "loss", "file": "/home/me/model.py", "line": 9, "trigger": "dynamo", "phases": []}
    recorded.recorder.progress[2] = Flight(
        {**other, "compile_id": "1/0", "compile_key": "0.1/0", "started_ns": began + 1}
    )
    page = open_widget(recorded.snapshot(), is_full=False)
    expect(page.locator(".cdiag-now-what")).to_have_text("x.shape[0]: 8 → 6 recompiling forward")
    expect(page.locator(".cdiag-now-before")).to_have_text("of about 6.0 s")
    expect(page.locator(".cdiag-progress > i")).to_have_attribute("style", re.compile("100"))
    page.get_by_role("button", name="+1 more").click()
    expect(page.locator(".cdiag-top .cdiag-menu-item")).to_contain_text("loss (model.py:9) starting")
    assert page.locator(".cdiag-top").bounding_box()["height"] == 44
    page.keyboard.press("Enter")
    expect(page.locator(".cdiag-detail h2")).to_have_text("loss 1/0")


def test_a_healthy_run_is_one_quiet_line(recorded, open_widget):
    recorded.compile(0, seconds=18.2)
    recorded.stop()
    page = open_widget(recorded.snapshot(), is_full=False)
    assert size_of(page) == "line"
    expect(page.locator(".cdiag-now-what")).to_have_text(re.compile("^Nothing recompiled · 1 compile, 18.2 s"))


def test_the_end_of_a_run_is_told_relative_to_now(recorded, open_widget):
    snapshot = recorded.snapshot()
    now = time.time() * 1000
    snapshot["meta"] |= {"state": "stopped", "started_ms": now - 330_000, "stopped_ms": now - 150_000}
    page = open_widget(snapshot)
    expect(page.locator(".cdiag-now-what")).to_have_text("train.py · run of 3 min, ended 2 min ago")
    expect(page.locator(".cdiag-now .cdiag-ago")).to_have_attribute("title", re.compile(r"\d\d:\d\d:\d\d"))


def test_a_narrow_head_leaves_out_what_would_be_cut(recorded, open_widget, deliver):
    recorded.compile(0, seconds=75.0)
    recorded.in_flight(compile_id="1/0", phases=["cpp_codegen"], **{**PLACE, "function": "loss"})
    page = open_widget(recorded.snapshot(), width=400, is_full=False)
    recorded.model.patch()
    is_cut = "() => [...document.querySelectorAll('.cdiag-now *')].some((n) => n.scrollWidth > n.clientWidth + 1)"
    expect(page.locator(".cdiag-now-what")).to_have_text("loss", use_inner_text=True)
    expect(page.locator(".cdiag-pause")).to_be_hidden()
    expect_value(page, is_cut, False)
    recorded.in_flight()
    deliver(page, recorded.patch())
    expect(page.locator(".cdiag-now")).to_have_text("Watching · 1 compile, 1 min 15 s", use_inner_text=True)
    recorded.compile(1)
    recorded.stop()
    now = time.time() * 1000
    snapshot = recorded.snapshot()
    snapshot["meta"] |= {"started_ms": now - 236_000, "stopped_ms": now - 150_000}
    page = open_widget(snapshot, width=400, is_full=False)
    expect(page.locator(".cdiag-now")).to_have_text("1 recompile in 2 compiles, 1 min 16 s", use_inner_text=True)
    expect_value(page, is_cut, False)
    page.click(".cdiag-size")
    expect(page.locator(".cdiag-now")).to_have_text("train.py · run of 1 min 26 s", use_inner_text=True)
    expect_value(page, is_cut, False)


def test_the_search_counts_its_hits_and_goes_to_each(recorded, open_widget):
    for number in range(4):
        recorded.compile(number)
    page = open_widget(recorded.snapshot())
    page.locator(".cdiag").focus()
    page.keyboard.press("/")
    expect(page.locator(".cdiag-search")).to_be_focused()
    page.keyboard.type("0/3")
    places = page.locator(".cdiag-hits button")
    hits = lambda: [int(text.split()[-1]) for text in places.all_text_contents()]  # noqa: E731
    expect_value(page, lambda: len(hits()) > 1, True)
    total = sum(hits())
    expect(page.locator(".cdiag-find-at")).to_have_text(str(total))
    page.keyboard.press("Enter")
    expect(page.locator(".cdiag-find-at")).to_have_text(f"1 / {total}")
    expect(page.locator(".cdiag-row.is-marked")).to_contain_text("0/3")
    expect_value(page, MARKED, lambda marked: {*marked} == {"0/3"})
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".cdiag-find-at")).to_have_text(f"{total} / {total}")
    places.filter(has_text=re.compile("^Compiles")).click()
    expect(page.locator('[data-tab="compiles"]')).to_have_attribute("aria-selected", "true")
    expect(page.locator(".cdiag-row.is-marked")).to_contain_text("0/3")
    page.fill(".cdiag-search", "no such thing")
    expect(page.locator(".cdiag-hits")).to_have_text(re.compile(r"^No hit in \d tables$"))
    page.keyboard.press("Escape")
    expect(page.locator(".cdiag-search")).to_have_value("")
    expect(page.locator(".cdiag-hits")).to_have_count(0)
    expect_value(page, MARKED, [])


def test_steps_are_reached_opened_and_copied_by_key(recorded, open_widget):
    page = open_widget({**recorded.snapshot(), "plan": make_plan()}, is_full=False)
    page.locator(".cdiag").focus()
    focused = "[...document.querySelectorAll('.cdiag-step')].findIndex((n) => n.contains(document.activeElement))"
    for key, step in (("j", 0), ("j", 1), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        expect_value(page, focused, step)
    page.keyboard.press("Enter")
    expect(page.locator(".cdiag-step-body")).to_have_count(1)
    page.keyboard.press("c")
    expect(page.locator(".cdiag-whole .cdiag-copy").first).to_have_text("Copied")


def test_findings_without_an_action_are_one_closed_line_and_alike_ones_are_one(recorded, open_widget):
    alike = {"rule": "graph_break", "suggestion": "Remove it."}
    findings = [
        make_finding(title="graph break at a.py:1", **alike),
        make_finding(title="graph break at b.py:2", **alike),
        make_finding(title="the second call", rule="second_call", is_expected=True),
        make_finding(title="x.shape[0] changes", step=1),
    ]
    page = open_widget({**recorded.snapshot(), "plan": make_plan(), "findings": findings})
    expect(page.locator(".cdiag-findings > ol > li")).to_have_count(1)
    expect(page.locator(".cdiag-findings > ol details > summary").first).to_have_text("and 1 more like it")
    notes = page.locator(".cdiag-notes")
    expect(notes.locator("> summary")).to_have_text("1 note with nothing to do")
    expect(notes.locator("li")).to_be_hidden()
    expect(page.locator(".cdiag-finding", has_text="x.shape[0] changes")).to_have_count(0)


def test_recording_that_took_much_is_a_warning_with_its_remedy_after_the_end(recorded, open_widget):
    recorded.compile(0, seconds=2.0)
    status = {"name": "compiles", "status": "active", "events": 1, "dropped": 0}
    recorded.add(SourceStatus(time_ns=BEGIN_NS, overhead_s=0.5, **status))
    page = open_widget(recorded.snapshot())
    expect(page.locator(".cdiag-totals .is-warning")).to_contain_text("overhead")
    expect(page.locator(".cdiag-own-cost")).to_have_count(0)
    recorded.stop()
    page = open_widget(recorded.snapshot())
    expect(page.locator(".cdiag-own-cost")).to_contain_text('watch(detail="lean")')


def test_the_head_has_room_for_what_compiles_and_for_what_is_searched(recorded, open_widget):
    recorded.in_flight(compile_id="0/0", phases=["cpp_codegen"], **PLACE)
    page = open_widget(recorded.snapshot(), width=1000)
    width = lambda: page.locator(".cdiag-find").bounding_box()["width"]  # noqa: E731
    expect_value(page, width, 104)
    page.fill(".cdiag-search", "self.num_updates")
    expect_value(page, width, 240)
    is_cut = "() => [...document.querySelectorAll('.cdiag-search')].some((n) => n.scrollWidth > n.clientWidth)"
    expect_value(page, is_cut, False)


def test_nothing_below_the_head_moves_when_a_compile_begins_and_ends(recorded, open_widget, deliver):
    recorded.compile(0)
    page = open_widget(recorded.snapshot())
    top = lambda: page.locator(".cdiag-timeline").bounding_box()["y"]  # noqa: E731
    before = expect_value(page, top, lambda y: y > 0)
    recorded.in_flight(compile_id="0/1", **PLACE)
    deliver(page, recorded.patch())
    page.wait_for_selector(".cdiag-flight", timeout=MOST_MS)
    assert top() == before
    recorded.in_flight()
    deliver(page, recorded.patch())
    expect(page.locator(".cdiag-flight")).to_have_count(0)
    assert top() == before
