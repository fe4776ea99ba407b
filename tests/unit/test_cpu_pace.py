"""The dashboard's thread leaves the processor to the compiler beside it."""

import pytest

from compilediag.views import patches


@pytest.fixture
def clock(monkeypatch):
    """[the time, the CPU time of this thread], which stand still."""
    now = [100.0, 5.0]
    monkeypatch.setattr(patches.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(patches.time, "thread_time", lambda: now[1])
    return now


def work(clock, cpu_s, wall_s=0.0):
    clock[0] += max(cpu_s, wall_s)
    clock[1] += cpu_s


def test_a_burst_after_a_pause_is_sent_at_once(clock):
    pace = patches.CpuPace()
    for _ in range(10):
        work(clock, patches.MOST_SAVED_S / 11)
        assert pace.pause_s() == 0
    work(clock, patches.MOST_SAVED_S / 5)
    assert pace.pause_s() > 0
    work(clock, 0.0, wall_s=2 * patches.MOST_SAVED_S / patches.SHARE)
    assert pace.pause_s() == 0


def test_constant_news_take_the_share_and_no_more(clock):
    pace = patches.CpuPace()
    begin, cost = clock[0], patches.LONGEST_S * patches.SHARE / 2
    for _ in range(10_000):
        work(clock, cost)
        clock[0] += pace.pause_s()
    assert 10_000 * cost / (clock[0] - begin) == pytest.approx(patches.SHARE, rel=0.05)


def test_one_long_step_delays_what_follows_by_little(clock):
    pace = patches.CpuPace()
    work(clock, 30.0)
    assert pace.pause_s() == patches.LONGEST_S
    work(clock, 0.0, wall_s=patches.MOST_SAVED_S / patches.SHARE)
    assert pace.pause_s() == 0
