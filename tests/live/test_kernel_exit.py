"""A kernel that ends while a page shows what it records: what is sent at its exit arrives whole."""

import json
import os
import queue
import time
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
from tests import inside
from IPython.display import display
from tests.browser.many_events import many_events
session = cd.start()
display(session.dashboard())
# A kernel drops what its client has not read 1 s after it has closed its sockets, and a busy client reads late.
get_ipython().kernel.iopub_socket.io_thread.socket.linger = 120_000
# Every ten seconds ipykernel closes the pipes of threads that have ended, at the exit also that of the main one.
sender = get_ipython().kernel.iopub_thread
sender._event_pipe_gc_seconds = 0.01
sender.io_loop.add_callback(sender._run_event_pipe_gc)
for n in range(4):
    inside.list_watching()[0].emit(lambda n=n: list(many_events(2000, time.time_ns() + n * 10**9)))
    session.flush()
    time.sleep(0.5)  # For the pump to send some of it before the end; the test does not depend on it.
inside.list_watching()[0].emit(lambda: list(many_events(2000, time.time_ns() + 10**10)))
"""


#: How long to wait for what has to come, however busy the machine is.
MOST_S = 300


def read_patch(message):
    """The patch that a message brings to a page; None if it is another message."""
    content = message["content"].get("data", {}).get("content", {})
    return json.loads(content["patch"]) if content.get("type") == "patch" else None


def is_last(patch):
    return patch is not None and patch.get("meta", {}).get("state") == "stopped"


def read_to_the_end(manager, client):
    """Every patch until the kernel has ended and the last one is here. ValueError if a message is not whole."""
    found, kinds, end = [], [], time.monotonic() + MOST_S
    while time.monotonic() < end:
        has_ended = not manager.is_alive()
        try:
            message = client.get_iopub_msg(timeout=1)
        except queue.Empty:
            if has_ended and any(map(is_last, found)):
                return found
            continue
        kinds.append((message["msg_type"], message["content"].get("text")))
        patch = read_patch(message)
        found += [] if patch is None else [patch]
    code = manager.provisioner.process.poll()
    raise AssertionError(f"the last patch did not come; the kernel's exit code is {code}, it sent {kinds}")


@pytest.mark.long("starts and ends a kernel that compiles")
def test_what_is_sent_while_a_kernel_ends_is_whole(tmp_path):
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONPATH": str(ROOT)}
    with open(tmp_path / "stderr.txt", "wb") as errors:
        manager, client = start_new_kernel(startup_timeout=MOST_S, cwd=str(tmp_path), env=environment, stderr=errors)
        try:
            # On a busy machine the cell ends late, and some patches, or all but the last, come before its end.
            messages = []
            client.execute_interactive(RECORD, timeout=MOST_S, allow_stdin=False, output_hook=messages.append)
            client.shutdown()
            patches = [patch for patch in map(read_patch, messages) if patch is not None]
            patches += read_to_the_end(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    assert "Traceback" not in (tmp_path / "stderr.txt").read_text()
    assert is_last(patches[-1])
    totals = [patch["totals"]["compiles"] for patch in patches if "totals" in patch]
    assert totals[-1] == 5 * 400, "many_events(2000) has 400 compiles"


def test_pages_know_of_the_exit_before_their_watch_ends(program_server):
    """Also where the module of the pages was imported before the first watch began."""
    code = (
        "import compilediag as cd\n"
        "import compilediag.views.widget as widget\n"
        "from compilediag.views import patches\n"
        "send = widget.DashboardWidget.send_state\n"
        "def send_state(self, key=None):\n"
        "    if self.model.data.state == 'stopped':\n"
        "        print('is exiting:', patches._is_exiting.is_set())\n"
        "    send(self, key)\n"
        "widget.DashboardWidget.send_state = send_state\n"
        "session = cd.start()\n"
        "session.dashboard()\n"
    )
    done = program_server.run("-c", code)
    assert (done.returncode, done.stdout) == (0, "is exiting: True\n"), done.stderr
