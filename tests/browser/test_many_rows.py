"""Many rows and many events: nothing is lost, and no more is in the page than can be seen.

How quick all this is, is measured by benchmarks/page.py.
"""

import pytest
from playwright.sync_api import expect

from compilediag.events import Compile
from tests.browser.conftest import expect_value, open_tab
from tests.browser.many_events import MS, many_events


def test_a_search_over_thousands_of_rows_leaves_those_that_match(recorded, open_widget):
    recorded.add(*many_events(10_000, recorded.clock))
    page = open_widget(recorded.snapshot())
    count = '[data-tab="recompiles"] .cdiag-count'
    expect(page.locator(count)).to_have_text("2,000")
    page.click(".cdiag-search")
    page.keyboard.type("forward_7 x.shape")
    page.wait_for_selector(f'{count}:text-is("50 of 2,000")')


@pytest.mark.long("a page of 10,000 rows")
def test_ten_thousand_rows_scroll(recorded, open_widget):
    recorded.add(
        *(
            Compile(time_ns=recorded.clock + n * MS, compile_id=f"0/{n}", function="f", outcome="ok", duration_s=0.001)
            for n in range(10_000)
        )
    )
    page = open_widget(recorded.snapshot())
    open_tab(page, "compiles")
    page.evaluate("() => { const s = document.querySelector('.cdiag-scroller'); s.scrollTop = s.scrollHeight; }")
    page.wait_for_selector('.cdiag-row:has-text("f 0/0")')
    expect_value(page, page.locator(".cdiag-row").count, lambda count: count < 60)
