"""The report of a session with texts of a stranger in its columns: it shows them, and nothing of them is obeyed."""

import re

import pytest
from playwright.sync_api import expect

import compilediag as cd
from compilediag.events import BY_TABLE, columns
from tests.browser.conftest import expect_value, open_tab
from tests.unit.hostile_sessions import make_base, spoil

#: Names that every object of JavaScript has, what breaks out of a selector or a script, and a word of a later version.
BREAK_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/"
TEXTS = ("constructor", "__proto__", 'a b"] > *', "</script><script>window.bitten = 1</script><img src=x>", "later")
TEXTS += (f"https://evil.example/a {BREAK_PAGE}gb0059.html/../evil {BREAK_PAGE}gb1.html\u115fevil",)
#: The addresses that a report links.
LINKED = re.compile(rf"blob:.*|#.*|https://docs\.pytorch\.org/.*|{re.escape(BREAK_PAGE)}gb\d+\.html")
#: Columns that join rows.
JOINS = ("digest", "stack", "caller", "run_id")
TABS = "() => [...document.querySelectorAll('[data-tab]')].map((tab) => tab.dataset.tab)"
#: Shows the details of some rows of the table that is on the screen.
OPEN_ROWS = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const rows = [...document.querySelectorAll(".cdiag-row")].filter((row) => row.offsetParent);
  for (const row of rows.slice(0, 5)) {
    row.click();
    await frame();
    await frame();
  }
  window.links = [...(window.links ?? []), ...[...document.links].map((link) => link.getAttribute("href"))];
  window.opened = (window.opened ?? 0) + Math.min(rows.length, 5);
}"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return make_base(tmp_path_factory.mktemp("base") / "base.cdiag")


def replace_texts(base, copy):
    """A copy of the session in which every other row has one of the texts in each column of texts."""
    found = [(t, name) for t, cls in BY_TABLE.items() for name, c in columns(cls).items() if c["dtype"] == "string"]
    found = [(table, name) for table, name in found if name not in JOINS]
    size = len(TEXTS)
    changes = [
        (f'UPDATE {table} SET "{name}" = ? WHERE event_id % {2 * size} = {2 * n}', text)
        for table, name in found
        for n, text in enumerate(TEXTS)
    ]
    return spoil(base, copy, *changes, ("UPDATE events SET title = ? WHERE id % 3 = 0", TEXTS[3]))


def test_texts_of_a_stranger_are_shown_and_not_obeyed(base, open_report, tmp_path):
    session = cd.load(replace_texts(base, tmp_path / "a.cdiag"))
    page = open_report(session.report(tmp_path / "report.html"))
    expect(page.locator(".cdiag-timeline canvas").first).to_be_visible()
    for name in expect_value(page, TABS, lambda names: len(names) > 8):
        open_tab(page, name)
        page.evaluate(OPEN_ROWS)
    expect_value(page, "window.opened", lambda count: count > 20)
    page.goto(page.url.partition("#")[0] + "#explorer")
    expect(page.locator(".cdiag-function").first).to_be_visible()
    expect_value(page, "window.bitten", None)
    assert [link for link in page.evaluate("window.links") if not LINKED.fullmatch(link)] == []
    expect(page.locator(".cdiag img, .cdiag script")).to_have_count(0)
