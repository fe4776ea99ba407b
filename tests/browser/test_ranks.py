"""The page of ranks: in the report of a session with two of them, and not there with one."""

import json
import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import expect

import compilediag as cd
from tests.browser.conftest import expect_value
from tests.inside import read_page_data
from tests.unit.session_builder import saved
from tests.unit.tables_builder import SECOND, compiled, lookup, recompile


def events_of(rank, seconds):
    """Two compiles of forward on a rank; a third on rank 1 alone."""
    common = {"rank": rank, "pid": 100 + rank}
    for number in range(2 + (rank == 1)):
        details = {**common, "compile_id": f"0/{number}", "time_ns": (2 * number + 1) * SECOND}
        if number:
            yield recompile("x.size()[0]", "tensor_size", str(3 + number), str(4 + number), number, **details)
        yield compiled(**details, duration_s=seconds * (1 + number))
    yield lookup(("miss", "hit")[rank % 2], compile_id="0/0", time_ns=SECOND + 1, **common)


@pytest.fixture
def of_ranks(tmp_path):
    """A session of 40 ranks. A recorder gives all that it writes its own rank, so ranks are put in afterwards."""
    events = [event for rank in range(40) for event in events_of(rank, 1 + rank / 10)]
    ranks = [(event.rank, event.pid) for event in events]
    session = saved(tmp_path, *events)
    with closing(sqlite3.connect(session.path)) as db, db:
        places = [(rank, pid, number) for number, (rank, pid) in enumerate(ranks, 1)]
        db.executemany("UPDATE events SET rank = ?, pid = ? WHERE id = ?", places)
    return cd.load(session.path)


def test_a_report_of_many_ranks_says_where_they_part(of_ranks, open_report, tmp_path):
    page = open_report(of_ranks.report(tmp_path / "report.html"))
    expect(page.locator(".cdiag-to-ranks")).to_have_text("40 ranks ›")
    expect(page.locator('.cdiag-finding[data-rule="ranks_diverge"]')).to_have_count(1)
    page.click(".cdiag-to-ranks")
    expect_value(page, "location.hash", "#ranks")
    sentences = page.locator(".cdiag-differences li")
    expect(sentences.last).to_contain_text("rank 1 diverged at 0/2 of forward (model.py:30)")
    expect(sentences.last).to_contain_text("guard x.shape[0] 5 -> 6")
    expect(sentences.first).to_contain_text("had different cache results")
    expect(page.locator('[data-section="rank-bars"] .cdiag-bar-row').first).to_have_attribute("data-rank", "39")
    row = page.locator('.cdiag-rank-graphs tr[data-compile="0/2"]')
    expect(row).to_contain_text("1 of 40")
    expect(row).to_contain_text("not on ranks 0, 2, 3, 4, 5, 6 and 33 more")
    expect(page.locator('tr[data-compile="0/0"] .cdiag-squares > span')).to_have_count(40)
    groups = page.locator(".cdiag-rank-groups tr[data-rank]")
    expect(groups).to_have_count(3)
    expect(groups.first).to_contain_text("20 ranks like rank 0")
    expect(groups.first.locator("td").nth(6)).to_have_text("rank 38, 14.4 s")
    expect(page.locator(".cdiag-rank-groups .cdiag-rank-detail").last).to_contain_text(
        "rank 1 had different cache results"
    )
    # Compiles in order, and the guard.
    shown = page.locator(".cdiag-rank-graphs tr[data-compile]")
    order = lambda: shown.evaluate_all("rows => rows.map((row) => row.dataset.compile)")  # noqa: E731
    in_order = ["0/0", "0/1", "0/2"]
    expect_value(page, order, lambda compiles: sorted(compiles) == in_order != compiles)
    page.click("text=in compile order")
    expect_value(page, order, in_order)
    page.locator(".cdiag-differences .cdiag-link").click()
    page.wait_for_selector(".cdiag-explorer .cdiag-page-title")
    page.go_back()
    page.click(".cdiag-ranks >> text=dashboard")
    expect(page.locator(".cdiag-to-ranks")).to_be_visible()


def test_each_rank_has_a_lane_of_its_own_in_the_timeline(of_ranks, open_report, tmp_path):
    page = open_report(of_ranks.report(tmp_path / "report.html"))
    expect(page.locator(".cdiag-more-lanes")).to_contain_text("33 more lanes")
    titles = page.locator(".cdiag-timeline-table tbody th")
    expect(titles).to_have_count(81)
    ranks = {number: {f"forward 0/{number} on rank {rank}" for rank in range(40)} for number in (0, 1)}
    assert set(titles.all_text_contents()) == ranks[0] | ranks[1] | {"forward 0/2 on rank 1"}


def test_values_stay_out_of_a_redacted_report(of_ranks, open_report, tmp_path):
    path = of_ranks.report(tmp_path / "report.html", redact=True)
    page = open_report(path)
    text = json.dumps(read_page_data(path))
    assert "5 -> 6" not in text and "ada" not in text
    page.click(".cdiag-to-ranks")
    expect(page.locator(".cdiag-differences li").last).to_contain_text("guard x.shape[0]")
