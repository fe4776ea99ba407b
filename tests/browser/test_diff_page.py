"""The page of a diff: the report's tables with what is different, in one file."""

import pytest
from playwright.sync_api import expect

import compilediag as cd
from tests.browser.conftest import expect_value, open_tab
from tests.browser.test_page import SPILLS, expect_contrast
from tests.unit.log_builder import golden, string


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
