"""The explorer's page: functions, grid, guard pages, trees; by mouse, by key, by link."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from compilediag.events import Artifact, Calls, Compile, GuardFailure, Recompile, SourceStatus
from tests.browser.conftest import expect_totals, expect_value, host_widget, send_patch
from tests.browser.test_accessibility import check_both_themes
from tests.inside import read_page

MS = 1_000_000


@pytest.fixture
def open_explorer(new_page):
    """`open_explorer(snapshot, events=())`: the widget's module in a plain page, opened at the explorer."""

    def open_it(snapshot, events=(), **options):
        page = new_page(**options)
        show_explorer(page, snapshot, events)
        return page

    return open_it


def show_explorer(page, snapshot, events=()):
    """The widget's module in this page, opened at the explorer; `window.paintedAfter` is how many ms it took."""
    page.set_content("<!doctype html><html><body></body></html>")
    host_widget(page, snapshot, page="explorer", events=list(events))
    page.wait_for_selector(".cdiag-explorer[data-seq]", state="attached")


def event(cls, at_ms, begin, **columns):
    return cls(time_ns=begin + int(at_ms * MS), **columns)


def guard(source, expected, actual, kind="value", **more):
    return {"guard_source": source, "guard_kind": kind, "expected": expected, "actual": actual, **more}


def recompiled(begin, frame, number, failures, seconds=0.5, function="step", line=10):
    """The events of one recompile; `failures`: compile id of the entry -> guards of it that failed, closest first."""
    at = 1000 * (number + 1)
    compile_id = f"{frame}/{number}"
    place = {"function": function, "file": "/home/me/train.py", "line": line}
    closest, guards = next(iter(failures.items()))
    main = {name: value for name, value in guards[0].items() if name != "guard"}
    columns = {"closest_compile_id": closest, "entries_checked": len(failures), **place}
    yield event(Recompile, at, begin, compile_id=compile_id, **columns, **main)
    for entry, failed in failures.items():
        for position, values in enumerate(failed):
            more = {"entry_compile_id": entry, "is_first": position == 0, "fail_count": 1 - min(position, 1)}
            yield event(GuardFailure, at, begin, compile_id=compile_id, **more, **values)
    yield compiled(begin, frame, number, seconds, function, line)


def compiled(begin, frame, number, seconds=0.5, function="step", line=10):
    return event(
        Compile, 1000 * (number + 1), begin, compile_id=f"{frame}/{number}", function=function, line=line,
        file="/home/me/train.py", trigger="dynamo", outcome="ok", is_recompile=number > 0, duration_s=seconds,
        guard_count=12, guard_check_us=3.25,
    )  # fmt: skip


@pytest.fixture
def story(recorded):
    """`step` recompiles three times: k counts up, and the size changes with it twice. `other` does once, for a mode."""
    begin = recorded.clock

    def size(old, new):
        return guard("x.size()[0]", old, new, "tensor_size")

    recorded.add(compiled(begin, 0, 0))
    recorded.add(*recompiled(begin, 0, 1, {"0/0": [guard("k", "1", "2", user_file="/home/me/train.py", user_line=12)]}))
    recorded.add(*recompiled(begin, 0, 2, {"0/1": [guard("k", "2", "3"), size("4", "6")],
                                           "0/0": [guard("k", "1", "3"), size("4", "6")]}))  # fmt: skip
    recorded.add(*recompiled(begin, 0, 3, {"0/2": [guard("k", "3", "4")],
                                           "0/1": [guard("k", "2", "4"), size("4", "6")],
                                           "0/0": [guard("k", "1", "4"), size("4", "6")]}))  # fmt: skip
    recorded.add(compiled(begin, 1, 0, function="other", line=40))
    mode = guard("___check_global_state()", "grad_mode: True", "False", "global_state")
    recorded.add(*recompiled(begin, 1, 1, {"1/0": [mode]}, 0.1, "other", 40))
    for number, (k, n) in enumerate([(1, 4), (2, 4), (3, 6), (4, 6)]):
        at = {"compile_id": f"0/{number}", "name": "dynamo_cpp_guards_str"}
        recorded.add((event(Artifact, 1000 * (number + 1), begin, **at), tree_text(k, n)))
    return recorded


def tree_text(k, n):
    return f"""
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None
| +- GuardManager: source=L['k'], accessed_by=FrameLocalsGuardAccessor(key='k'), type=<class 'int'>, tag_safe=(False, False)
| | +- EQUALS_MATCH: L['k'] == {k}                    # y = x * k  # me/train.py:12 in step
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x'), type=<class 'torch.Tensor'>, tag_safe=(False, False)
| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, device=None, requires_grad=False, size=[{n}], stride=[1])
| | +- NO_HASATTR: hasattr(L['x'], '_dynamo_dynamic_indices') == False

Guard latency = 3.25 us
"""  # noqa: E501 - as torch writes it


def texts(page, selector):
    return page.locator(selector).all_text_contents()


def heading(page):
    return page.locator(".cdiag-page-title")


def column(page, name):
    """The cells of a column in the table of entries."""
    return page.locator(f'.cdiag-entries td[data-column="{name}"]')


def test_a_function_has_its_lost_seconds_a_grid_of_its_recompiles_and_its_entries(story, open_explorer):
    page = open_explorer(story.snapshot())
    expect(page.locator(".cdiag-function-name")).to_have_text(["step", "other"])
    expect(page.locator(".cdiag-function-lost")).to_have_text(["1.5 s", "100 ms"])
    expect(heading(page)).to_have_text("step (train.py:10)")
    expect_value(page, lambda: texts(page, ".cdiag-grid thead th")[4:], ["0/0", "0/1", "0/2"])
    changes = page.locator(".cdiag-grid .cdiag-change-cell code")
    expect(changes).to_have_text(["k: 1 → 2", "k: 2 → 3", "k: 3 → 4"])
    rows = page.locator(".cdiag-grid tbody tr")
    lines = [["◆A", "", ""], ["AB", "◆AB", ""], ["AB", "AB", "◆A"]]
    expect_value(page, lambda: [texts(row, ".cdiag-cell") for row in rows.all()], lines)
    closest = page.locator(".cdiag-grid .is-closest button").last
    title = "0/3 compared with 0/2: k (expected 3), failed first (fewest failing guards)"
    expect(closest).to_have_attribute("title", title)
    expect(column(page, "entry")).to_have_text(["0/3", "0/2", "0/1", "0/0"])
    expect(column(page, "position")).to_have_text(["1", "2", "3", "4"])
    expect(column(page, "reason")).to_have_text(["k: 3 → 4", "k: 2 → 3", "k: 1 → 2", "first"])
    expect(column(page, "failed here")).to_have_text(["–", "k once", "k 2x · x.shape[0] 2x", "k 3x · x.shape[0] 2x"])
    expect(page.locator(".cdiag-page")).to_contain_text("Calls were not counted; watch(calls=True) counts them")
    expect(column(page, "calls"), "and not 0").to_have_count(0)


def called(begin, ran, number, count, each):
    place = {"function": "step", "file": "/home/me/train.py", "line": 10}
    times = {"timed": count, "total_s": each * count, "min_s": each, "first_s": each}
    return event(
        Calls, 1000 * (number + 1) + 1, begin, compile_id=f"0/{number}", ran=ran, count=count, **times, **place
    )


def test_entries_show_their_calls_if_they_were_counted(story, open_explorer):
    begin = story.clock
    story.add(event(SourceStatus, 0, begin, name="calls", status="active"))
    story.add(*(called(begin, "compiled", n, count, 0.0002) for n, count in enumerate((5000, 1, 40))))
    page = open_explorer(story.snapshot())
    expect(column(page, "calls")).to_have_text(["0", "40", "1", "5,000"])
    expect(column(page, "one call")).to_have_text(["–", "200 µs", "200 µs", "200 µs"])
    expect(page.locator(".cdiag-page-head")).to_contain_text("1 entry called once, 500 ms")
    expect(column(page, "saved")).to_have_count(0)
    story.add(called(begin, "eager", 4, 1234, 0.001))
    page = open_explorer(story.snapshot())
    expect(column(page, "saved")).to_have_text(["–", "32 ms", "800 µs", "4.0 s"])
    expect(column(page, "break-even calls")).to_have_text(["–", "625", "625", "625"])
    expect(page.locator(".cdiag-page-head")).to_contain_text("1,234 calls ran eagerly, 1.2 s")
    expect(page.locator(".cdiag-page")).to_contain_text("compared with an eager call, 1.0 ms")
    page.click('.cdiag-explorer button:text-is("dashboard")')
    expect_totals(page, eager_calls="1,234", eager_s="1.2 s", used_once="1", used_once_s="500 ms")


def test_what_an_entry_never_wins_is_said(story, open_explorer):
    story.add(event(SourceStatus, 0, story.clock, name="calls", status="active"))
    story.add(called(story.clock, "compiled", 0, 10, 0.002), called(story.clock, "eager", 4, 10, 0.001))
    page = open_explorer(story.snapshot())
    expect(column(page, "saved").last).to_have_text("-10 ms")
    expect(column(page, "break-even calls")).to_have_text(["–", "–", "–", "never"])


def test_a_guards_page_shows_values_other_failures_and_verdict(story, open_explorer):
    page = open_explorer(story.snapshot())
    page.click('.cdiag-guards [data-key="guard x.size()[0]"]')
    expect(heading(page)).to_have_text("Bx.shape[0]")
    expect(page.locator(".cdiag-verdict")).to_have_text(
        "Fixing this guard alone would not have helped: k also failed in every entry that it failed in."
    )
    page.click('[data-key="guard k"]')
    expect(heading(page)).to_have_text("Ak")
    verdict = re.compile("^Fixing this guard alone would have prevented 2 of the 3 recompiles")
    expect(page.locator(".cdiag-verdict")).to_have_text(verdict)
    points = page.locator(".cdiag-plot circle")
    expect(points.locator("title").first).to_have_text("the first entry: 1")
    expect_value(
        page,
        lambda: points.evaluate_all("all => all.map(n => Number(n.getAttribute('cy')))"),
        lambda heights: len(heights) == 4 and heights == sorted(heights, reverse=True),
    )
    expect(page.locator(".cdiag-plot")).to_have_attribute("aria-label", "values of k: 1, then 2, then 3, then 4")
    page.click(".cdiag-up")
    expect(heading(page)).to_have_text("step (train.py:10)")


def test_objects_have_names_and_no_address_is_on_the_page(recorded, open_explorer):
    begin = recorded.clock
    recorded.add(compiled(begin, 0, 0))
    label = "<lambda> at train.py:7"
    text = (
        "___check_obj_id(L['act'].__code__, 14006823357{}048), type=<class 'code'>  # act(x)  # me/train.py:3 in step"
    )
    for number in (1, 2, 3):
        came = guard("act", label, f"{label} (another object)", "identity")
        failed = {f"0/{n}": [{**came, "lookalike": label, "guard": text.format(n)}] for n in reversed(range(number))}
        recorded.add(*recompiled(begin, 0, number, failed))
    page = open_explorer(recorded.snapshot())
    page.click('.cdiag-guards [data-key="guard act"]')
    lanes = page.locator(".cdiag-plot-text", has_text="lambda")
    expect(lanes).to_have_text([label, f"{label} #2", f"{label} #3", f"{label} #4"])
    checks = page.locator(".cdiag-page .cdiag-code")
    expect(checks.last).to_have_text("act.__code__ is the same object (code #3)")
    expect(page.locator(".cdiag-page")).not_to_contain_text(re.compile(r"\d{12,}|0x[0-9a-f]{6,}"))


def test_a_guard_tree_is_searched_and_held_against_another(story, open_explorer):
    page = open_explorer(story.snapshot())
    page.locator('.cdiag-entries [data-key^="tree"]').last.click()
    expect(heading(page)).to_have_text("Guards of entry 0/0")
    expect(page.locator(".cdiag-page-head")).to_contain_text("12 guards · 3.3 µs for one check")
    shown = page.locator(".cdiag-tree-line:not([hidden])")
    expect(shown).to_have_count(7)
    page.fill(".cdiag-tree-bar .cdiag-search", "size=[4]")
    lines = [
        "RootGuardManager",
        "x: torch.Tensor",
        "TENSOR_MATCH x: Tensor size=[4], stride=[1], torch.float32, device=None, requires_grad=False, "
        "DispatchKeySet(CPU)",
    ]
    expect(shown).to_have_text(lines)
    page.select_option(".cdiag-select", label="entry 0/2")
    signs = ["− EQUALS_MATCH", "+ EQUALS_MATCH", "− TENSOR_MATCH", "+ TENSOR_MATCH"]
    changed = '.cdiag-tree-line:not([hidden]):not([data-sign=" "])'
    expect_value(page, lambda: [line[:14] for line in texts(page, changed)], signs)
    expect(page.locator(".cdiag-tree-bar")).to_contain_text("4 lines differ of 9")
    check_both_themes(page, "document.querySelector('.cdiag')")
    page.get_by_role("button", name="all lines").click()
    expect(shown).to_have_count(9)


def test_the_search_looks_into_guards_and_values(story, open_explorer):
    page = open_explorer(story.snapshot())
    page.fill(".cdiag-search", "global grad_mode")
    expect(page.locator(".cdiag-function-name")).to_have_text(["other"])
    page.fill(".cdiag-search", "nothing like it")
    expect(page.locator(".cdiag-function-list")).to_have_text("nothing matches")


def test_everything_can_be_reached_by_key(story, open_explorer):
    page = open_explorer(story.snapshot())
    focused = "document.activeElement.dataset.cell ?? document.activeElement.className"
    page.focus('.cdiag-function[tabindex="0"]')
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("other (train.py:40)")
    expect_value(page, focused, "cdiag-page")
    page.keyboard.press("Escape")
    expect_value(page, focused, lambda name: name.startswith("cdiag-function"))
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("step (train.py:10)")
    expect_value(page, focused, "cdiag-page")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == "0 change":
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect_value(page, focused, "1 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect_value(page, focused, "2 1")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("Ak")
    page.keyboard.press("Escape")
    expect(heading(page)).to_have_text("step (train.py:10)")


def test_what_comes_in_later_is_shown_and_the_reader_keeps_the_place(story, open_explorer):
    page = open_explorer(story.snapshot())
    story.model.patch()
    page.focus('[data-cell="1 change"]')
    page.locator(".cdiag-page").evaluate("node => (node.dataset.same = 'yes')")
    story.add(*recompiled(story.clock, 0, 4, {"0/3": [guard("k", "4", "5")]}))

    def show_more():
        """Documents are made twice a second at most."""
        if (patch := story.model.patch()) is not None:
            send_patch(page, patch)
        return page.locator(".cdiag-grid tbody th").all_text_contents()

    expect_value(page, show_more, ["0/1", "0/2", "0/3", "0/4"])
    expect_value(page, "document.activeElement.dataset.cell", "1 change")


def test_an_event_opens_its_guard_and_the_way_back_to_the_dashboard(story, open_explorer):
    row = story.session.recompiles
    wanted = int(row[row["compile_id"] == "1/1"]["event_id"].iloc[0])
    page = open_explorer(story.snapshot(), [wanted])
    expect(heading(page)).to_have_text("A___check_global_state()")
    page.click("text=dashboard")
    page.click(".cdiag-size")
    expect(page.locator(".cdiag-explorer")).to_be_hidden()
    page.locator(".cdiag-row").first.click()
    page.click("text=explore this guard")
    expect(heading(page)).to_have_text("Ak")
    expect(page.locator(".cdiag-explorer")).to_be_visible()


def test_a_finding_of_the_dashboard_leads_to_its_guard(story, open_widget):
    page = open_widget(story.snapshot())
    page.locator(".cdiag-step-title").first.click()
    page.locator(".cdiag-explore-link").first.click()
    expect(heading(page)).to_have_text("Ak")
    expect(page.locator(".cdiag-page .cdiag-finding-title").first).to_contain_text("recompiled 3x")
    expect(page.locator(".cdiag-page .cdiag-mark").first).to_have_text("step 1")


def test_a_reports_address_leads_to_a_guard_and_back_goes_back(story, open_report, new_page, tmp_path):
    path = story.session.report(tmp_path / "report.html")
    page = open_report(path)
    page.click("text=guard explorer")
    page.click('.cdiag-guards [data-key="guard x.size()[0]"]')
    expect(heading(page)).to_have_text("Bx.shape[0]")
    address = page.url
    page.go_back()
    expect(heading(page)).to_have_text("step (train.py:10)")
    page.go_back()
    expect(page.locator(".cdiag [data-total]").first).to_be_visible()
    other = new_page()
    other.goto(address)
    expect(heading(other)).to_have_text("Bx.shape[0]")
    other.goto(path.as_uri() + "#explorer/%E0%A4%A")
    other.reload()
    expect(other.locator(".cdiag [data-total]").first).to_be_visible()


def test_a_redacted_report_has_the_grid_without_values_or_trees(story, new_page, tmp_path):
    path = story.session.report(tmp_path / "report.html", redact=True)
    page = new_page()
    page.goto(path.as_uri() + "#explorer")
    expect(page.locator(".cdiag-grid .cdiag-change-cell code")).to_have_text(["k", "k", "k"])
    expect(page.locator('.cdiag-entries [data-key^="tree"]')).to_have_count(0)
    page.click('.cdiag-guards [data-key="guard k"]')
    expect(heading(page)).to_have_text("Ak")
    expect(page.locator(".cdiag-plot")).to_have_count(0)
    assert "train.py" not in read_page(path) and "x * k" not in read_page(path)


def test_hostile_text_is_text(recorded, open_explorer):
    evil = "</script><script>window.bitten = 1</script><img src=x onerror='window.bitten = 1'>\u2028\ud800"
    begin = recorded.clock
    recorded.add(compiled(begin, 0, 0, function=evil))
    details = guard(evil, evil, evil, user_file=f"/home/{evil}.py", user_line=3, guard=evil)
    recorded.add(*recompiled(begin, 0, 1, {"0/0": [details]}, function=evil))
    at = {"compile_id": "0/0", "name": "dynamo_cpp_guards_str"}
    recorded.add(
        (event(Artifact, 1000, begin, **at), f"+- RootGuardManager\n| +- LAMBDA_GUARD: {evil}\n{evil}\n+- {evil}")
    )
    page = open_explorer(recorded.snapshot())
    page.locator(".cdiag-guards .cdiag-guard-link").click()
    page.click(".cdiag-up")
    page.locator('.cdiag-entries [data-key^="tree"]').click()
    expect(page.locator(".cdiag-tree-line")).to_have_count(3)
    page.fill(".cdiag-search", evil[:20])
    expect(page.locator(".cdiag-function")).to_have_count(1)
    expect_value(page, "window.bitten", None)
    expect(page.locator(".cdiag img, .cdiag script")).to_have_count(0)


def test_an_empty_session_says_so(recorded, open_explorer):
    page = open_explorer(recorded.snapshot())
    expect(page.locator(".cdiag-page")).to_have_text("nothing compiled so far")


def add_functions(recorded, count, recompiles):
    """Functions that recompile for a size and a counter; each entry fails at every later recompile."""
    begin = recorded.clock
    for frame in range(count):
        name = f"forward_{frame}"
        recorded.add(compiled(begin, frame, 0, function=name, line=frame))
        for number in range(1, recompiles + 1):
            size = guard(f"x.size()[{frame % 3}]", str(number), str(number + 1), "tensor_size")
            step = guard("self.step", str(number - 1), str(number))
            failed = {f"{frame}/{n}": [dict(size), dict(step)] for n in reversed(range(number))}
            recorded.add(*recompiled(begin, frame, number, failed, 0.01, name, frame))


def test_functions_are_searched_by_name_and_guard(recorded, open_explorer):
    add_functions(recorded, 80, 3)
    page = open_explorer(recorded.snapshot())
    expect(page.locator(".cdiag-grid tbody tr")).to_have_count(3)
    page.click(".cdiag-search")
    page.keyboard.type("forward_7 x.shape")
    page.wait_for_function("() => document.querySelectorAll('.cdiag-function').length === 11")


def test_no_column_of_its_tables_is_cut(story, open_explorer):
    page = open_explorer(story.snapshot())
    frames = "() => [...document.querySelectorAll('.cdiag-plain-frame')].map((f) => f.scrollWidth - f.clientWidth)"
    for width in (1000, 700, 400):
        page.set_viewport_size({"width": width, "height": 1000})
        expect(page.locator(".cdiag-entries")).to_be_visible()
        expect_value(page, frames, [0, 0])
