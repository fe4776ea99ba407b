"""The export menu, live and in a report, and what is printed."""

import csv
import json
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import expect_value

MENU = ".cdiag-top .cdiag-menu"
#: Notes what is on paper while the browser prints.
NOTE = """() => addEventListener("beforeprint", () => {
  const count = (selector) => document.querySelectorAll(selector).length;
  window.printed = {
    rows: count(".cdiag-paper tbody tr"),
    heads: [...document.querySelectorAll(".cdiag-paper h2")].map((node) => node.textContent),
    findings: count(".cdiag-finding"),
    lanes: count(".cdiag-print-lanes canvas"),
    theme: document.querySelector(".cdiag").dataset.theme,
  };
})"""


def test_a_live_page_asks_the_kernel_and_says_where_the_file_is(recorded, open_widget):
    recorded.compile(0)
    page = open_widget(recorded.snapshot())
    page.click(f"{MENU} > button")
    page.click('[data-command="html"]')
    expect(page.locator(".cdiag-exported")).to_have_text("HTML report: the kernel writes it when it is idle")
    expect_value(page, "window.host.sent", [{"type": "export", "format": "html", "request": 2}])
    answer = {"type": "answer", "request": 2, "path": "/home/me/train.html"}
    page.evaluate("(answer) => window.host.deliver(answer)", answer)
    expect(page.locator(".cdiag-exported")).to_have_text("HTML report written to /home/me/train.html")
    page.click(f"{MENU} > button")
    expect(page.locator('[data-command="print"]'), "a notebook would print all of its cells").to_have_count(0)
    page.click('[data-command="parquet"]')
    page.evaluate("() => window.host.deliver({ type: 'answer', request: 3, error: 'pyarrow is missing' })")
    expect(page.locator(".cdiag-exported")).to_contain_text("was not written: pyarrow is missing")


def test_a_report_saves_the_table_and_everything_without_a_kernel(recorded, open_report, tmp_path):
    for number in range(3):
        recorded.compile(number, function='evil, "name"\n')
    page = open_report(recorded.session.report(tmp_path / "report.html"))
    page.fill(".cdiag-search", "0/2")
    page.click(f"{MENU} > button")
    with page.expect_download() as table:
        page.click('[data-command="table"]')
    with open(table.value.path(), newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["compile_id"] for row in rows] == ["0/2"] and rows[0]["function"] == 'evil, "name"\n'
    page.click(f"{MENU} > button")
    with page.expect_download() as everything:
        page.click('[data-command="json"]')
    saved = json.loads(Path(everything.value.path()).read_text())
    assert len(saved["tables"]["compiles"]) == 3 and saved["totals"]["recompiles"] == 2
    expect(page.locator(".cdiag-exported")).to_contain_text("session.json was saved")


def test_paper_has_everything_and_the_tables_that_were_chosen(recorded, open_report, tmp_path):
    for number in range(30):
        recorded.compile(number)
    recorded.graph_break("print is not traced")
    page = open_report(recorded.session.report(tmp_path / "report.html"), color_scheme="dark")
    page.evaluate(NOTE)
    page.pdf(path=tmp_path / "usual.pdf")
    printed = page.evaluate("window.printed")
    assert printed["heads"] == ["Recompiles", "Compiles", "Graph breaks"]
    assert printed["rows"] == 29 + 30 + 1
    assert printed["theme"] == "light" and printed["lanes"] >= 1 and printed["findings"] >= 1
    expect(page.locator(".cdiag")).to_have_attribute("data-theme", "dark")
    page.click(f"{MENU} > button")
    page.click('[data-command="print"]')
    page.get_by_role("checkbox", name="Compiles 30").uncheck()
    page.get_by_role("checkbox", name="Caches").check()
    page.keyboard.press("Escape")
    expect(page.locator(".cdiag-print-dialog")).to_be_hidden()
    page.pdf(path=tmp_path / "chosen.pdf")
    expect_value(page, "window.printed.heads", ["Recompiles", "Caches", "Graph breaks"])
