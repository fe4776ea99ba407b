"""A kernel that ends while a page shows what it records: what is sent at its exit arrives whole."""

import json
import os
import queue
from pathlib import Path

import pytest

pytest.importorskip("anywidget")
pytest.importorskip("ipykernel")

from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).resolve().parents[2]
#: A message of more than 64 KiB is sent without a copy, with the help of a thread of pyzmq.
RECORD = """
import time
import compilediag as cd
from compilediag import sources
from IPython.display import display
from tests.browser.many_events import many_events
session = cd.start()
display(session.dashboard())
for n in range(4):
    sources._attached[0].emit(lambda n=n: list(many_events(2000, time.time_ns() + n * 10**9)))
    session.flush()
    time.sleep(0.5)
sources._attached[0].emit(lambda: list(many_events(2000, time.time_ns() + 10**10)))
"""


def read_messages(manager, client):
    """Every message until the kernel has ended. ValueError if one is not whole."""
    found = []
    while True:
        is_over = not manager.is_alive()
        try:
            found.append(client.get_iopub_msg(timeout=1))
        except queue.Empty:
            if is_over:
                return found


def test_what_is_sent_while_a_kernel_ends_is_whole(tmp_path):
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONPATH": str(ROOT)}
    with open(tmp_path / "stderr.txt", "wb") as errors:
        manager, client = start_new_kernel(cwd=str(tmp_path), env=environment, stderr=errors)
        try:
            client.execute_interactive(RECORD, timeout=120, allow_stdin=False, output_hook=lambda message: None)
            client.shutdown()
            messages = read_messages(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text()
    contents = [message["content"].get("data", {}).get("content", {}) for message in messages]
    patches = [json.loads(content["patch"]) for content in contents if content.get("type") == "patch"]
    assert patches[-1]["meta"]["state"] == "stopped"
    assert patches[-1]["totals"]["compiles"] >= 2000
