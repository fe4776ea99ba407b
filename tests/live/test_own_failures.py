"""What fails in compilediag outside of a hook is shown, and the program goes on. `make soak` breaks every function."""

import logging

import pytest

import compilediag as cd
from compilediag import active_recording, recording, sources
from compilediag.sources.autotune.select_algorithm import SelectAlgorithm
from compilediag.sources.caches.cache_keys import CacheKeys
from compilediag.sources.hooks.source import Source
from compilediag.sources.trace import structured_trace
from compilediag.storage import data
from tests.live import programs


def fail(*args, **kwargs):
    raise RuntimeError("own failure")


def reason_of(session, name):
    return {row["name"]: row["reason"] for row in session.status()}[name]


@pytest.mark.swallows
@pytest.mark.parametrize(
    ("owner", "function", "source"),
    [
        (SelectAlgorithm, "close", SelectAlgorithm.name),
        (CacheKeys, "status", "keys"),
        (structured_trace, "find_name", "trace"),
    ],
)
def test_what_fails_at_the_end_in_a_state_or_in_a_record_is_shown(owner, function, source, monkeypatch):
    with cd.watch() as session:
        monkeypatch.setattr(owner, function, fail)
        programs.numbers()
    monkeypatch.undo()
    assert "own failure" in reason_of(session, source)
    assert len(session.recompiles) == 3


@pytest.mark.swallows
@pytest.mark.parametrize(
    ("owner", "function"),
    [(recording.Recorder, "end"), (active_recording.sources, "device_name"), (data.SessionData, "announce_end")],
)
def test_what_fails_while_a_watch_ends_is_a_warning(owner, function, monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, "compilediag"), cd.watch() as session:
        programs.numbers()
        session.flush()
        monkeypatch.setattr(owner, function, fail)
    monkeypatch.undo()
    assert "own failure" in caplog.text and sources.list_hooks() == [] and cd.current() is None
    assert len(session.recompiles) == 3
    with cd.watch() as later:
        pass
    assert later.meta["stopped_ns"] is not None


@pytest.mark.swallows
@pytest.mark.parametrize("function", ["end", "_shut_down"])
def test_a_source_whose_end_fails_leaves_no_patch(function, monkeypatch):
    with cd.watch():
        monkeypatch.setattr(Source, function, fail)
    monkeypatch.undo()
    assert sources.list_hooks() == []
