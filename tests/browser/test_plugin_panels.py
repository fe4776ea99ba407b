"""A panel of another package: a tab with a table, in the report and live."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import expect_value, open_tab
from tests.unit.sample_plugin import on_the_path


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    with on_the_path(tmp_path / "site", monkeypatch) as folder:
        yield folder


def cells(page):
    return page.eval_on_selector_all(
        ".cdiag-row", "all => all.map((row) => [...row.children].map((cell) => cell.textContent))"
    )


def test_a_panel_is_sorted_searched_and_opened_as_any_table(recorded, plugged, open_report, tmp_path):
    for number in range(3):
        recorded.compile(number)
    recorded.compile(0, function="<b>other</b>")
    page = open_report(recorded.session.report(tmp_path / "report.html"))
    open_tab(page, "panel:by_function")
    expect(page.locator('[data-tab="panel:by_function"]')).to_have_text("by function2")
    expect_value(page, lambda: [row[:2] for row in cells(page)], [["<b>other</b>", "1"], ["forward", "3"]])
    page.click('.cdiag-head [data-column="compiles"] button')
    expect_value(page, lambda: [row[1] for row in cells(page)], ["3", "1"])
    page.fill(".cdiag-search", "other")
    page.wait_for_function("() => document.querySelectorAll('.cdiag-row').length === 1")
    page.click(".cdiag-row")
    expect(page.locator(".cdiag-detail h2")).to_have_text("by function")
    expect(page.locator(".cdiag-detail-body")).to_contain_text("<b>other</b>")


def test_a_panel_that_fails_says_why_in_its_tab(recorded, plugged, open_report, tmp_path):
    recorded.compile(0)
    page = open_report(recorded.session.report(tmp_path / "report.html"))
    open_tab(page, "panel:broken_panel")
    expect(page.locator(".cdiag-note").first).to_have_text(
        "panel broken_panel of sample-plugin: ValueError: no such table"
    )
    open_tab(page, "compiles")
    expect(page.locator(".cdiag-row")).to_have_count(1)


def test_a_live_page_has_the_panel_anew_when_there_is_more(recorded, plugged, open_widget, deliver):
    recorded.compile(0)
    page = open_widget(recorded.snapshot())
    open_tab(page, "panel:by_function")
    expect_value(page, lambda: [row[:2] for row in cells(page)], [["forward", "1"]])
    recorded.compile(1)
    recorded.stop()
    deliver(page, recorded.patch())
    page.wait_for_function("() => document.querySelector('.cdiag-row [data-column=compiles]').textContent === '2'")
