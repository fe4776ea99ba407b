"""Walking recorded call stacks."""

from compilediag.diagnosis.stack_walk import StackWalk
from compilediag.events import RowList, StackFrame


def walk(key, *frames):
    rows = [StackFrame(time_ns=1, stack=stack, caller=caller, function=stack) for stack, caller in frames]
    return [frame.function for frame in StackWalk(RowList(rows)).walk(key)]


def test_the_innermost_frame_comes_first():
    assert walk("f", ("main", None), ("g", "main"), ("f", "g")) == ["f", "g", "main"]


def test_a_stack_that_is_not_recorded_is_empty_and_one_that_is_cut_off_ends():
    assert walk("h", ("f", None)) == walk(None, ("f", None)) == []
    assert walk("f", ("f", "lost")) == ["f"]


def test_frames_that_name_each_other_end():
    assert walk("f", ("f", "g"), ("g", "f")) == ["f", "g"]
