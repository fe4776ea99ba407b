"""The page of a diff: the report's tables with what is different, in one file."""

import pytest

import compilediag as cd
from tests.browser.test_page import SPILLS, WORST_CONTRAST
from tests.unit.log_builder import golden


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
    page = page_of(b"", golden())
    assert page.text_content("h1") == "before.log → after.log"
    assert "compiles 0 -> " in page.text_content("header")
    page.click('[data-tab="panel:compile"]')
    assert page.text_content(".cdiag-row [data-column=verdict]") == "▲ worse"
    seconds = page.eval_on_selector_all(
        '.cdiag-row [data-column="seconds more"]', "all => all.map((cell) => Number(cell.textContent))"
    )
    assert len(seconds) > 3 and seconds == sorted(seconds, reverse=True)
    wanted = titles(page)[-1]
    page.fill(".cdiag-search", wanted)
    page.wait_for_function("() => document.querySelectorAll('.cdiag-row').length < 4")
    assert wanted in titles(page)
    page.focus(".cdiag-row")
    page.keyboard.press("Enter")
    assert page.text_content(".cdiag-detail h2") == "Compiles"
    page.keyboard.press("Escape")


def test_sessions_without_differences_say_so_and_have_no_table(page_of):
    page = page_of(golden(), golden())
    assert "No differences." in page.text_content("header")
    assert page.locator(".cdiag-table").is_hidden() and page.locator(".cdiag-search").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_read_in_any_width_and_light(page_of, scheme):
    page = page_of(b"", golden(), color_scheme=scheme, width=420)
    assert page.evaluate(SPILLS) == []
    assert page.evaluate(WORST_CONTRAST) >= 4.5
