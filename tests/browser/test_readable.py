"""Every text can be read whole, and every word of the compiler is explained, by mouse and by key."""

import re

import pytest
from playwright.sync_api import expect

from compilediag.events import GUARD_KINDS, SymbolicShape
from tests.browser.conftest import BEGIN_NS, expect_value, open_tab
from tests.inside import GUARD_KIND_MEANINGS

LONG = "a_function_with_a_name_that_is_much_longer_than_any_column_of_a_table_could_ever_be_in_a_notebook"
#: Parts of the page in which something is cut off at the right and cannot be scrolled to.
LOST = """() => [...document.querySelectorAll(".cdiag, .cdiag *")].filter((node) => {
  const style = getComputedStyle(node);
  const isCut = node.scrollWidth > node.clientWidth + 1 && style.overflowX === "hidden";
  if (node.closest(".is-unseen")) return false; // for screen readers only
  return isCut && style.textOverflow !== "ellipsis" && node.clientWidth > 0 && style.display !== "inline";
}).map((node) => node.className)"""


def test_a_text_that_is_cut_is_shown_whole_on_hover_and_on_focus(recorded, open_widget):
    for number in range(2):
        recorded.compile(number, function=LONG, place={"function": LONG, "file": "/home/me/model.py", "line": 30})
    page = open_widget(recorded.snapshot(), width=700)
    hint = page.locator(".cdiag-tooltip")
    page.locator('.cdiag-row [data-column="compile"]').hover()
    expect(hint).to_have_text(f"{LONG} 0/1")
    page.mouse.move(0, 0)
    page.hover(".cdiag-foot")
    expect(hint).to_be_hidden()
    page.focus('[data-tab="recompiles"]')
    page.keyboard.press("Tab")
    while not page.evaluate("document.activeElement.classList.contains('cdiag-row')"):
        page.keyboard.press("Tab")
    expect(hint).to_contain_text(f"{LONG} 0/1")
    page.keyboard.press("Enter")
    expect(page.locator(".cdiag-detail h2")).to_have_text(f"{LONG} 0/1")


def test_words_are_explained_and_escape_hides_the_explanation_first(recorded, open_widget):
    for number in range(3):
        recorded.compile(number)
    page = open_widget(recorded.snapshot())
    hint = page.locator(".cdiag-tooltip")
    page.locator(".cdiag-row").first.click()
    for name, meaning in (("first", "checked first"), ("tensor size", "Checks a size"), ("Dynamo", "traces")):
        page.locator(".cdiag-detail .cdiag-term", has_text=re.compile(f"^{name}")).first.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        expect(hint).to_contain_text(meaning)
        owner = page.locator("[aria-describedby]")
        expect(owner).to_have_attribute("aria-describedby", hint.get_attribute("id"))
    # What the focus shows stays when that scrolls or moves what is below the pointer.
    page.locator(".cdiag-detail").dispatch_event("scroll")
    page.locator(".cdiag-row").first.dispatch_event("mouseover")
    expect(hint).to_be_visible()
    page.keyboard.press("Escape")
    expect(hint).to_be_hidden()
    expect(page.locator(".cdiag-detail")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".cdiag-detail")).to_be_hidden()
    page.hover('.cdiag-head [data-column="lost"] button')
    expect(hint).to_contain_text("Compile time of a recompile")


def test_ranges_are_words_and_durations_have_the_units_of_the_page(recorded, open_widget):
    recorded.compile(0, seconds=2.0)
    recorded.compile(1, seconds=0.25)
    shapes = ["[2, int_oo]", "[-int_oo, int_oo]", "[0, 10]", "[3, 3]", "VR[-int_oo, 4]"]
    for number, range_ in enumerate(shapes):
        recorded.add(SymbolicShape(time_ns=BEGIN_NS + number, compile_id="0/0", action="created", range=range_))
    page = open_widget(recorded.snapshot(), width=1500)
    open_tab(page, "symbolic_shapes")
    cells = page.locator('.cdiag-row [data-column="range"]')
    expect_value(page, lambda: {*cells.all_text_contents()}, {"2 or more", "any", "0 to 10", "only 3", "4 or less"})
    open_tab(page, "compiles")
    expect(page.locator('.cdiag-head [data-column="total"]')).to_have_text("total")
    expect(page.locator('.cdiag-row [data-column="total"]')).to_have_text(["250 ms", "2.0 s"])


@pytest.mark.parametrize("width", [400, 1300])
def test_nothing_is_lost_at_the_right(recorded, open_widget, width):
    for number in range(4):
        recorded.compile(number, function=LONG)
    page = open_widget(recorded.snapshot(), width=width)
    for name in ("recompiles", "compiles", "cache_groups", "sources"):
        open_tab(page, name)
        expect_value(page, LOST, [])
        table = ".cdiag-scroller"
        page.eval_on_selector(table, "node => { node.scrollLeft = node.scrollWidth; }")
        last = page.locator(".cdiag-head > div").last.bounding_box()
        box = page.locator(table).bounding_box()
        assert last["x"] + last["width"] <= box["x"] + box["width"] + 1
    expect_value(page, "document.documentElement.scrollWidth <= innerWidth", True)


def test_each_kind_of_guard_is_explained():
    assert set(GUARD_KIND_MEANINGS) == set(GUARD_KINDS)
