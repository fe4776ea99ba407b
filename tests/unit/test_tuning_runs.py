"""What became of a process that was to time a choice."""

import subprocess
import sys

import pytest

from compilediag.sources.autotune.select_algorithm import ProcessTiming


@pytest.mark.parametrize(
    ("code", "how", "became"),
    [
        ("raise SystemExit(3)", "wait", "exited with code 3"),
        ("input()", "kill", "was ended by signal 9"),
        ("input()", "poll", "is gone"),
    ],
)
def test_what_became_of_a_process_is_said(code, how, became):
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        getattr(process, how)()
        if how != "poll":
            process.wait()
        described = ProcessTiming(process, reason="EOFError: Ran out of input").describe_failure()
        process.communicate(b"\n")
    assert described == f"the tuner, process {process.pid}, {became}"


@pytest.mark.parametrize("reason", [None, "TimeoutError: Timeout in autotune subprocess 7"])
def test_other_reasons_are_what_they_are(reason):
    assert ProcessTiming(None, reason=reason).describe_failure() == reason
