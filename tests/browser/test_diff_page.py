"""The page of a diff: the report's tables with what is different, in one file."""

import pytest
from playwright.sync_api import expect

import compilediag as cd
from compilediag.events import Compile, Recompile
from tests.browser.conftest import expect_value, open_tab
from tests.browser.test_timeline import SETTLED
from tests.unit.log_builder import golden, string
from tests.unit.session_builder import SECOND, saved

#: Keeps what each canvas draws dimmed in its last painting in `window.dimmed`: "bar" and texts.
WATCH_DIM = """
  const own = CanvasRenderingContext2D.prototype;
  const { fillRect, fillText, clearRect } = own;
  window.dimmed = new Map();
  own.clearRect = function (...args) {
    window.dimmed.set(this.canvas, new Set());
    return clearRect.apply(this, args);
  };
  own.fillRect = function (...args) {
    if (this.globalAlpha < 1) window.dimmed.get(this.canvas)?.add("bar");
    return fillRect.apply(this, args);
  };
  own.fillText = function (text, ...args) {
    if (this.globalAlpha < 1) window.dimmed.get(this.canvas)?.add(text);
    return fillText.call(this, text, ...args);
  };"""


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


@pytest.fixture
def recompiled(tmp_path, new_page):
    """The page of a function that recompiles for `k` in the first session and compiles once in the second."""
    at = {"function": "step", "file": "/home/me/train.py", "line": 10}
    begin = [Compile(time_ns=SECOND, compile_id="0/0", compile_key="k.0", duration_s=1.0, outcome="ok", **at)]
    recompile = Compile(
        time_ns=4 * SECOND, compile_id="0/1", compile_key="k.1", duration_s=2.0, outcome="ok", is_recompile=True, **at
    )
    why = Recompile(
        time_ns=4 * SECOND, compile_id="0/1", compile_key="k.1", guard_source="k", guard_kind="value",
        expected="1", actual="2", **at,
    )  # fmt: skip
    paths = []
    for name, events in (("before", [*begin, recompile, why]), ("after", begin)):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / f"{name}.cdiag")
        saved(tmp_path / name, *events).save(paths[-1])
    page = new_page(width=1000)
    page.add_init_script(WATCH_DIM)
    page.goto(cd.diff(*paths).report(tmp_path / "diff.html").as_uri())
    expect(page.locator("h2.cdiag-diff-name")).to_have_text(["Before: before.cdiag", "After: after.cdiag"])
    return page


def test_a_compile_leads_to_all_of_its_changes(recompiled):
    frames = recompiled.locator(".cdiag-timeline")
    axes = frames.evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert len(axes) == 2 and axes[0] == axes[1]
    open_tab(recompiled, "panel:compile")
    frames.first.get_by_role("button", name="As a table").click()
    frames.first.get_by_role("button", name="0/1").click()
    expect(recompiled.locator(".cdiag-detail h2")).to_have_text("Recompiles by cause")
    expect(recompiled.locator(".cdiag-detail")).to_contain_text("for k (value)")
    changes = recompiled.locator(".cdiag-diff-changes button")
    expect(changes).to_have_count(2)
    expect(changes.first).to_have_attribute("aria-pressed", "true")
    changes.last.click()
    expect(recompiled.locator(".cdiag-detail h2")).to_have_text("Compiles")
    expect(changes.last).to_have_attribute("aria-pressed", "true")
    recompiled.click(".cdiag-close")
    expect(changes).to_have_count(0)


def read_dim(page):
    """What each timeline has drawn dimmed."""
    page.evaluate(SETTLED)
    return page.evaluate(
        "[...document.querySelectorAll('.cdiag-canvas')].map((each) => [...window.dimmed.get(each)].sort())"
    )


def test_a_change_marks_its_compiles_and_dims_the_others(recompiled):
    expect_value(recompiled, lambda: read_dim(recompiled), [[], []])
    open_tab(recompiled, "panel:recompile")
    recompiled.locator(".cdiag-row").first.click()
    expect(recompiled.locator(".cdiag-detail h2")).to_have_text("Recompiles by cause")
    expect_value(recompiled, lambda: read_dim(recompiled), [["bar", "first compile"], ["bar"]])
    recompiled.click(".cdiag-close")
    expect_value(recompiled, lambda: read_dim(recompiled), [[], []])


def test_a_zoom_in_one_timeline_moves_the_other(recompiled):
    lanes, resets = recompiled.locator(".cdiag-lanes"), recompiled.locator(".cdiag-reset")
    lanes.first.focus()
    for key in ("+", "+", "Shift+ArrowRight"):
        recompiled.keyboard.press(key)
    expect(resets).to_have_count(2)
    windows = """[...document.querySelectorAll(".cdiag-minimap")].map((map) => {
      const find = (name) => map.querySelector(`.cdiag-minimap-${name}`).getBoundingClientRect();
      const [part, whole] = ["window", "track"].map(find);
      return [part.left - whole.left, part.width].map(Math.round).join();
    })"""
    expect_value(recompiled, windows, lambda found: len(found) == 2 and found[0] == found[1])
    resets.last.click()
    expect(resets).to_have_count(0)
