"""The kernel's side of the widget: what is sent, when it stops, what becomes of an error."""

import json
import subprocess
import sys
import threading
import time

import pytest

from tests.browser.conftest import MOST_MS
from tests.inside import QUIET_S, Pump, split_patch


def wait_for(condition):
    end = time.monotonic() + MOST_MS / 1000
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def patches(sent):
    return [json.loads(message["patch"]) for message in sent if message["type"] == "patch"]


@pytest.fixture
def pump(recorded):
    """A running pump and the list of what it sends."""
    sent = []
    pump = Pump(recorded.model, sent.append)
    pump.start()
    yield pump, sent
    pump.stop()
    wait_for(lambda: not is_running())


def is_running():
    """True while a pump sends what is new."""
    return any(thread.name == "compilediag-dashboard" for thread in threading.enumerate())


def test_events_come_in_batches_and_the_last_one_is_not_lost(recorded):
    sent = []
    for number in range(30):
        recorded.compile(number)
    recorded.stop()
    Pump(recorded.model, sent.append).start()
    wait_for(lambda: not is_running())
    rows = {row[0] for patch in patches(sent) for row in patch.get("rows", {}).get("compiles", [])}
    assert len(rows) == 30
    assert sum("compiles" in patch.get("rows", {}) for patch in patches(sent)) == 1
    states = [patch["meta"]["state"] for patch in patches(sent) if "meta" in patch]
    assert states[-1] == "stopped"
    assert [patch["seq"] for patch in patches(sent)] == sorted({patch["seq"] for patch in patches(sent)})


def test_a_quiet_session_gives_signs_of_life_only(recorded, pump):
    pump, sent = pump
    wait_for(lambda: any(message["type"] == "alive" for message in sent))
    before = len(sent)
    time.sleep(5 * QUIET_S)
    assert {message["type"] for message in sent[before:]} <= {"alive"}


def test_an_error_is_shown_in_the_widget_and_stops_nothing_else(recorded):
    sent = []

    class Broken:
        data = recorded.session.data

        def patch(self):
            raise OSError("the disk is full")

    pump = Pump(Broken(), sent.append)
    pump.start()
    wait_for(lambda: not is_running())
    assert {message["type"] for message in sent} == {"error"}
    assert "OSError: the disk is full" in sent[0]["text"]
    assert sent[-1]["text"].endswith("the recording continues")
    recorded.compile(0)
    assert len(recorded.session.compiles) == 1


def test_a_page_that_missed_something_gets_everything(recorded, pump):
    pump, sent = pump
    recorded.compile(0)
    wait_for(lambda: any("rows" in patch for patch in patches(sent)))
    pump.handle_message({"type": "something else"})
    pump.handle_message("not even a dict")
    pump.handle_message({"type": "resync"})
    whole = [patch for patch in patches(sent) if patch["reset"]]
    assert len(whole) == 1 and whole[0]["columns"] and len(whole[0]["rows"]["compiles"]) == 1


def test_parts_of_a_patch_add_up_to_it():
    patch = {
        "seq": 3,
        "reset": True,
        "totals": {"events": 5},
        "columns": {"a": []},
        "rows": {"a": [[n, "x" * 50] for n in range(100)], "b": [[1, "y"]]},
        "texts": {str(n): {"z": "z" * 400, "cut": False} for n in range(5)} | {"5": {"same": 4}},
    }
    parts = [json.loads(part) for part in split_patch(patch, 1000)]
    assert [part["part"] for part in parts] == list(range(len(parts)))
    assert [part["reset"] for part in parts] == [True] + [False] * (len(parts) - 1)
    rows = {name: [row for part in parts for row in part.get("rows", {}).get(name, [])] for name in ("a", "b")}
    texts = {key: text for part in parts for key, text in part.get("texts", {}).items()}
    assert (rows, texts) == (patch["rows"], patch["texts"])
    assert all("totals" not in part for part in parts[:-1]) and parts[-1]["totals"] == patch["totals"]


def test_the_widget_has_everything_for_a_reload_and_a_plain_text(recorded):
    recorded.compile(0)
    recorded.compile(1)
    widget = recorded.session.dashboard()
    try:
        snapshot = json.loads(widget.get_state("snapshot")["snapshot"])
        assert snapshot["reset"] and len(snapshot["rows"]["compiles"]) == 2
        recorded.compile(2)
        again = json.loads(widget.get_state("snapshot")["snapshot"])
        assert len(again["rows"]["compiles"]) == 3
        bundle, _ = widget._repr_mimebundle_()
        assert bundle["text/plain"] == f"compilediag: a watch is running. So far:\n\n{recorded.session.summary()}"
        assert "application/vnd.jupyter.widget-view+json" in bundle
    finally:
        widget.close()
    wait_for(lambda: not is_running())


def test_a_session_that_is_over_needs_no_pump(recorded):
    recorded.compile(0)
    recorded.stop()
    widget = recorded.session.dashboard()
    assert not is_running()
    assert len(json.loads(widget.get_state("snapshot")["snapshot"])["rows"]["compiles"]) == 1
    assert repr(widget) == recorded.session.summary()
    widget.close()


def test_a_page_that_is_not_behind_gets_no_second_copy(recorded):
    sent = []
    pump = Pump(recorded.model, sent.append)
    recorded.compile(0)
    recorded.model.patch()
    pump.handle_message({"type": "resync", "seq": recorded.model.seq})
    assert sent == []
    pump.handle_message({"type": "resync", "seq": 0})
    (patch,) = patches(sent)
    assert patch["reset"] and patch["seq"] == recorded.model.seq == 1


def test_without_anywidget_one_line_says_what_to_install(recorded):
    code = """
import sys
sys.modules["anywidget"] = None
import compilediag as cd
from compilediag.errors import CompilediagError
try:
    cd.load(sys.argv[1]).dashboard()
except CompilediagError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, recorded.session.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout == "the dashboard needs anywidget: pip install anywidget\n", done.stderr
