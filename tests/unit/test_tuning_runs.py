"""What became of a process that was to time a choice."""

import subprocess
import sys

import pytest

from compilediag.sources.autotune.select_algorithm import ProcessTiming

ENDED = "EOFError: Ran out of input"


def process(code):
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)


def test_a_process_that_ended_says_with_which_code():
    ended = process("raise SystemExit(3)")
    ended.wait()
    failure = ProcessTiming(ended, reason=ENDED).describe_failure()
    assert failure == f"the tuner, process {ended.pid}, exited with code 3"
    ended.stdin.close()


def test_a_process_that_was_killed_says_by_which_signal():
    killed = process("input()")
    killed.kill()
    killed.wait()
    failure = ProcessTiming(killed, reason=ENDED).describe_failure()
    assert failure == f"the tuner, process {killed.pid}, was ended by signal 9"
    killed.stdin.close()


def test_a_process_that_closed_its_end_but_goes_on_is_gone_for_us():
    alive = process("input()")
    assert ProcessTiming(alive, reason=ENDED).describe_failure() == f"the tuner, process {alive.pid}, is gone"
    alive.communicate(b"\n")


@pytest.mark.parametrize("reason", [None, "TimeoutError: Timeout in autotune subprocess 7"])
def test_other_reasons_are_what_they_are(reason):
    assert ProcessTiming(None, reason=reason).describe_failure() == reason
