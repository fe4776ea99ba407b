"""The page of a diff: the report's tables with what is different, in one file."""

import pytest
from playwright.sync_api import expect

import compilediag as cd
from compilediag.events import Compile, Recompile
from tests.browser.conftest import expect_value, open_tab
from tests.browser.test_page import SPILLS, expect_contrast
from tests.unit.log_builder import golden, string
from tests.unit.session_builder import SECOND, saved


@pytest.fixture
def page_of(tmp_path, new_page):
    """Opens the page of what differs between two logs, given as bytes."""

    def opened(before, after, **options):
        for name, data in (("before.log", before), ("after.log", after)):
            (tmp_path / name).write_bytes(data)
        path = cd.diff(tmp_path / "before.log", tmp_path / "after.log").report(tmp_path / "diff.html")
        page = new_page(**options)
        page.goto(path.as_uri())
        page.wait_for_selector("h1")
        return page

    return opened


def titles(page):
    return page.eval_on_selector_all(".cdiag-row [data-column=what]", "all => all.map((cell) => cell.textContent)")


def test_each_kind_of_change_has_a_tab_and_the_costly_ones_come_first(page_of):
    page = page_of(string().encode(), golden())
    expect(page.locator("h1")).to_have_text("before.log → after.log")
    expect(page.locator("header")).to_contain_text("compiles 0 → ")
    open_tab(page, "panel:compile")
    expect(page.locator(".cdiag-row [data-column=verdict]").first).to_have_text("▲ worse")
    cells = page.locator('.cdiag-row [data-column="seconds more"]')
    expect_value(
        page,
        lambda: cells.evaluate_all("all => all.map((cell) => Number(cell.textContent))"),
        lambda seconds: len(seconds) > 3 and seconds == sorted(seconds, reverse=True),
    )
    wanted = titles(page)[-1]
    page.fill(".cdiag-search", wanted)
    page.wait_for_function("() => document.querySelectorAll('.cdiag-row').length < 4")
    expect_value(page, lambda: titles(page), lambda found: wanted in found)
    page.focus(".cdiag-row")
    page.keyboard.press("Enter")
    expect(page.locator(".cdiag-detail h2")).to_have_text("Compiles")
    page.keyboard.press("Escape")


def test_sessions_without_differences_say_so_and_have_no_table(page_of):
    page = page_of(golden(), golden())
    expect(page.locator("header")).to_contain_text("No differences.")
    expect(page.locator(".cdiag-table")).to_be_hidden()
    expect(page.locator(".cdiag-search")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_read_in_any_width_and_light(page_of, scheme):
    page = page_of(string().encode(), golden(), color_scheme=scheme, width=420)
    expect_value(page, SPILLS, [])
    expect_contrast(page)


@pytest.fixture
def recompiled(tmp_path, new_page):
    """The page of two sessions: `step` recompiles for `k` and for `n` at once in the first, not in the second."""
    at = {"function": "step", "file": "/home/me/train.py", "line": 10}
    begin = [Compile(time_ns=SECOND, compile_id="0/0", compile_key="k.0", duration_s=1.0, outcome="ok", **at)]
    recompile = {"time_ns": 4 * SECOND, "compile_id": "0/1", "compile_key": "k.1", **at}
    causes = [
        Recompile(guard_source=name, guard_kind="value", expected="1", actual="2", **recompile) for name in ("k", "n")
    ]
    paths = []
    again = Compile(duration_s=2.0, outcome="ok", is_recompile=True, **recompile)
    for name, events in (("before", [*begin, again, *causes]), ("after", begin)):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / f"{name}.cdiag")
        saved(tmp_path / name, *events).save(paths[-1])
    page = new_page(width=1000)
    page.goto(cd.diff(*paths).report(tmp_path / "diff.html").as_uri())
    return page


def drawn(page):
    """What the two timelines have drawn."""
    return page.locator(".cdiag-timeline .cdiag-lanes canvas").evaluate_all("all => all.map((one) => one.toDataURL())")


def test_both_timelines_have_one_scale_and_show_the_same_stretch(recompiled):
    page = recompiled
    expect(page.locator("h2.cdiag-diff-name")).to_have_text(["Before: before.cdiag", "After: after.cdiag"])
    frames = page.locator(".cdiag-timeline")
    axes = frames.evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert len(axes) == 2 and axes[0] == axes[1]
    everything = page.get_by_role("button", name="Show everything")
    expect(everything).to_have_count(0)
    frames.last.locator(".cdiag-lanes").press("+")
    expect(everything).to_have_count(2)
    everything.first.click()
    expect(everything).to_have_count(0)


def test_a_compile_leads_to_each_of_its_changes(recompiled):
    page, frames = recompiled, recompiled.locator(".cdiag-timeline")
    open_tab(page, "panel:compile")
    frames.first.get_by_role("button", name="As a table").click()
    chosen = frames.first.get_by_role("button", name="0/1")
    found = set()
    for _ in range(4):
        chosen.click()
        expect(page.locator(".cdiag-detail h2")).to_be_visible()
        found.add(page.locator(".cdiag-detail").inner_text())
    assert {text for text in found if "for k (value)" in text} and {text for text in found if "for n (value)" in text}


def test_a_change_marks_its_compiles_in_both_timelines(recompiled):
    page = recompiled
    open_tab(page, "panel:recompile")
    unmarked = expect_value(page, lambda: drawn(page), lambda found: len(found) == 2)
    page.focus(".cdiag-row")
    page.keyboard.press("Enter")
    marked = expect_value(page, lambda: drawn(page), lambda found: found[0] != unmarked[0])
    assert marked[1] != unmarked[1], "the compile of the other session is no part of it"
    page.keyboard.press("Escape")
    expect_value(page, lambda: drawn(page), unmarked)
