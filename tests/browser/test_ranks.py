"""The page of ranks: in the report of a session with two of them, and not there with one."""

import sqlite3

import pytest

from compilediag.session import Session
from compilediag.views.report import write_report
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
    with sqlite3.connect(session.path) as db:
        places = [(rank, pid, number) for number, (rank, pid) in enumerate(ranks, 1)]
        db.executemany("UPDATE events SET rank = ?, pid = ? WHERE id = ?", places)
    return Session(session.path)


def test_a_report_of_many_ranks_says_where_they_part(of_ranks, open_report, tmp_path):
    page = open_report(write_report(of_ranks.data, tmp_path / "report.html"))
    assert page.text_content(".cdiag-to-ranks") == "40 ranks ›"
    assert page.locator('.cdiag-finding[data-rule="ranks_diverge"]').count() == 1
    page.click(".cdiag-to-ranks")
    assert page.evaluate("location.hash") == "#ranks"
    sentences = page.locator(".cdiag-differences li").all_text_contents()
    assert "rank 1 diverged at 0/2 of forward (model.py:30)" in sentences[-1]
    assert "guard x.size()[0] 5 -> 6" in sentences[-1] and "had different cache results" in sentences[0]
    assert page.locator('[data-section="rank-bars"] .cdiag-bar-row').first.get_attribute("data-rank") == "39"
    row = page.locator('.cdiag-rank-graphs tr[data-compile="0/2"]')
    assert "1 of 40" in row.text_content() and "not on ranks 0, 2, 3, 4, 5, 6 and 33 more" in row.text_content()
    assert page.locator('tr[data-compile="0/0"] .cdiag-squares > span').count() == 40


def test_compiles_can_be_shown_in_order_and_the_guard_explored(of_ranks, open_report, tmp_path):
    page = open_report(write_report(of_ranks.data, tmp_path / "report.html"))
    page.click(".cdiag-to-ranks")
    shown = page.locator(".cdiag-rank-graphs tr[data-compile]")
    first = shown.evaluate_all("rows => rows.map((row) => row.dataset.compile)")
    page.click("text=in compile order")
    assert shown.evaluate_all("rows => rows.map((row) => row.dataset.compile)") == ["0/0", "0/1", "0/2"] != first
    page.locator(".cdiag-differences .cdiag-link").click()
    page.wait_for_selector(".cdiag-explorer .cdiag-page-title")
    page.go_back()
    page.click(".cdiag-ranks >> text=dashboard")
    assert page.locator(".cdiag-to-ranks").is_visible()


def test_values_stay_out_of_a_redacted_report(of_ranks, open_report, tmp_path):
    path = write_report(of_ranks.data, tmp_path / "report.html", redact=True)
    page = open_report(path)
    assert "5 -\\u003e 6" not in path.read_text() and "ada" not in page.text_content("#cdiag-data")
    page.click(".cdiag-to-ranks")
    assert "guard x.size()[0]" in page.locator(".cdiag-differences li").last.text_content()


def test_one_rank_has_no_such_page(recorded, open_report, tmp_path):
    recorded.compile(0)
    page = open_report(write_report(recorded.session.data, tmp_path / "report.html"))
    assert page.locator(".cdiag-to-ranks").is_hidden()
