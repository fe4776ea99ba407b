"""What a page remembers, and how it tells that a long compile ended."""

import re
import time

from playwright.sync_api import expect

from tests.browser.conftest import expect_value, open_tab


def test_table_and_filters_survive_a_reload(recorded, open_report, tmp_path):
    for number in range(4):
        recorded.compile(number)
    recorded.graph_break("print is not traced", user_file="/home/me/model.py", user_line=33)
    page = open_report(recorded.session.report(tmp_path / "report.html"))
    page.locator('.cdiag-finding[data-rule="graph_break"]').click()
    open_tab(page, "compiles")
    page.fill(".cdiag-search", "0/0")
    expect(page.locator(".cdiag-row")).to_have_count(1)
    page.reload()
    expect(page.locator('[data-tab="compiles"]')).to_have_attribute("aria-selected", "true")
    expect(page.locator(".cdiag-search")).to_have_value("0/0")
    expect(page.locator(".cdiag-row")).to_have_count(1)
    expect(page.locator(".cdiag-chip")).to_have_text(re.compile("^only: "))
    page.click(".cdiag-chip")
    page.fill(".cdiag-search", "")
    page.reload()
    expect(page.locator(".cdiag-row")).to_have_count(4)
    expect(page.locator(".cdiag-chip")).to_be_hidden()


def test_the_title_says_that_a_long_compile_ended_to_who_asked_for_it(recorded, open_widget, deliver):
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    page.evaluate("() => { document.title = 'notebook'; }")

    def compile_for(seconds, number):
        began = time.time_ns() - seconds * 10**9
        place = {"function": "forward", "file": "/home/me/model.py", "line": 30, "started_ns": began}
        recorded.in_flight(compile_id=f"0/{number}", **place)
        deliver(page, recorded.patch())
        recorded.in_flight()
        deliver(page, recorded.patch())

    compile_for(3000, 0)
    expect_value(page, "document.title", "notebook")
    page.click(".cdiag-top .cdiag-menu > button")
    notify = page.locator('[data-command="notify"]')
    notify.click()
    expect(notify).to_contain_text("on")
    compile_for(-3000, 1)  # Shorter than any that is announced, however long the page takes.
    expect_value(page, "document.title", "notebook")
    compile_for(3000, 2)
    expect_value(page, "document.title", re.compile(r"✓ forward compiled in 5\d min.* · notebook").fullmatch)
    page.mouse.move(5, 5)
    expect_value(page, "document.title", "notebook")
