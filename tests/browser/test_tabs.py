"""Which tabs a page has, what they leave out, and what they say while they are empty."""

import re

from playwright.sync_api import expect

from compilediag.events import CacheLookup, GuardFailure
from tests.browser.conftest import BEGIN_NS, expect_value, open_tab

LIBRARY = "/usr/lib/python3.11/site-packages/ipykernel/iostream.py"
MENU = ".cdiag-tab-strip .cdiag-menu"


def look_up(recorded, function, file, outcome="bypass"):
    """A lookup of a function in Dynamo's cache."""
    place = {"function": function, "file": file, "line": 3}
    recorded.add(CacheLookup(time_ns=BEGIN_NS, compile_id="0/0", cache="dynamo_code", outcome=outcome, **place))


def test_a_session_without_compiles_says_what_to_do_and_has_one_tab(recorded, open_widget):
    recorded.stop()
    page = open_widget(recorded.snapshot())
    expect(page.locator(".cdiag-tabs [role=tab]:visible")).to_have_text(["Recompiles0"])
    open_tab(page, "compiles")
    expect(page.locator(".cdiag-note").first).to_contain_text("call a function that torch.compile returned")
    open_tab(page, "graph_functions")
    expect(page.locator(".cdiag-note").first).to_contain_text('torch.compile(mode="reduce-overhead") records them')


def test_a_recompile_is_one_line_what_changed_where_and_which_step_removes_it(recorded, open_widget):
    recorded.compile(0, seconds=90.0)
    recorded.compile(1, seconds=3.2)
    recorded.compile(2, seconds=6.4)
    others = {"guard_source": "self.n", "guard_kind": "value", "expected": "4", "actual": "5"}
    recorded.add(GuardFailure(time_ns=BEGIN_NS, compile_id="0/2", entry_compile_id="0/1", **others))
    recorded.add(
        GuardFailure(time_ns=BEGIN_NS, compile_id="0/2", entry_compile_id="0/0", **{**others, "guard_source": "k"})
    )
    page = open_widget(recorded.snapshot())
    heads = page.locator(".cdiag-head [role=columnheader]")
    expect(heads).to_have_text(["at ▼", "what changed", "change", "compile", "line", "step", "lost"])
    row = page.locator(".cdiag-row").first
    cells = ["1 min 33 s", "x.shape[0]", "2 → 3 + 1 more", "forward 0/2", "model.py:31", "12", "6.4 s"]
    expect(row.locator("[role=gridcell]")).to_have_text(cells)
    expect(row.locator('[data-column="at"]')).to_have_attribute("title", re.compile(r"\d\d:\d\d:\d\d"))
    widths = page.locator(".cdiag-lost > i").evaluate_all("all => all.map((bar) => bar.getBoundingClientRect().width)")
    assert widths == [64, 32]
    assert row.bounding_box()["height"] == 30
    row.click()  # The details leave the table no room for bars; a number is never cut for one.
    expect(page.locator(".cdiag-lost:visible")).to_have_count(0)
    cut = "all => all.filter((cell) => cell.scrollWidth > cell.clientWidth).length"
    assert page.locator('.cdiag-row > [data-column="lost"]').evaluate_all(cut) == 0


def test_the_menu_of_other_tabs_by_key(recorded, open_widget):
    recorded.compile(0)
    page = open_widget(recorded.snapshot())
    page.focus(f"{MENU} > button")
    page.keyboard.press("Enter")
    expect(page.locator(f"{MENU} [role=menuitem]").first).to_be_focused()
    page.keyboard.press("End")
    expect(page.locator('[data-command="sources"]')).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(f"{MENU}-list")).to_be_hidden()
    expect(page.locator(f"{MENU} > button")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator('[data-tab="sources"]')).to_be_focused()
    expect(page.locator('[data-tab="sources"]')).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Home")
    expect(page.locator('[data-tab="sources"]'), "it goes back into the menu").to_be_hidden()


def test_lookups_of_other_peoples_code_are_left_out_and_can_be_shown(recorded, open_widget):
    recorded.compile(0)
    look_up(recorded, "write", LIBRARY)
    look_up(recorded, "schedule", LIBRARY)
    look_up(recorded, "forward", "/home/me/model.py")
    page = open_widget(recorded.snapshot())
    open_tab(page, "cache_groups")
    count = page.locator('[data-tab="cache_groups"] .cdiag-count')
    functions = lambda: page.locator('.cdiag-row [data-column="function"]').all_text_contents()  # noqa: E731
    expect_value(page, lambda: "forward:3" in functions() and "write:3" not in functions(), True)
    expect(count).to_have_text("2")
    page.click("text=show 2 functions of libraries that torch did not compile")
    expect_value(page, lambda: {"write:3", "schedule:3"} <= {*functions()}, True)
    expect(count).to_have_text("4")
    page.click("text=hide 2 functions of libraries")
    page.fill(".cdiag-search", "schedule")  # a search looks into all of them
    expect_value(page, functions, ["schedule:3"])
