"""Many rows and many events: nothing is lost, and no more is in the page than can be seen.

How quick all this is, is measured by benchmarks/page.py.
"""

import pytest
from playwright.sync_api import expect

from compilediag.events import Compile
from tests.browser.conftest import expect_totals, expect_value, open_tab, send_patch
from tests.browser.many_events import MS, many_events, many_texts

REPORT_BYTES = 5_000_000


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


@pytest.mark.long("5,000 events")
def test_five_thousand_events_in_fifty_patches_all_arrive(recorded, open_widget):
    page = open_widget(recorded.snapshot())
    recorded.model.patch()
    events = list(many_events(5_000, recorded.clock))
    for number in range(50):
        recorded.add(*events[number * 100 : (number + 1) * 100])
        send_patch(page, recorded.patch())
    page.wait_for_function("() => document.querySelector('[data-total=compiles]').dataset.value === '1000'")
    expect_totals(page, recompiles="1,000")
    expect_totals(page, cache_misses="1,000")


@pytest.mark.long("10,000 events")
def test_a_report_of_ten_thousand_events_is_small(recorded, open_report, tmp_path):
    recorded.add(*many_events(10_000, recorded.clock))
    many_texts(recorded)
    path = recorded.session.report(tmp_path / "report.html")
    assert path.stat().st_size <= REPORT_BYTES
    expect(open_report(path).locator('[data-tab="recompiles"] .cdiag-count')).to_have_text("2,000")
