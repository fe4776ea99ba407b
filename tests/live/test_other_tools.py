"""Other tools that patch the same functions as a watch, and leave in whatever order."""

import functools
import itertools
import logging
import sys

import pytest
import torch
from torch._dynamo import utils

import compilediag as cd
from compilediag import sources
from compilediag.sources.hooks import late_imports
from tests.live import programs

#: Functions that are watched; two sources watch the last.
PLACES = [
    (utils, "add_compilation_metrics_to_chromium"),
    (utils.ChromiumEventLogger, "log_event_start"),
    (utils.ChromiumEventLogger, "log_instant_event"),
]
#: More watches than Python's limit of recursion has frames.
CYCLES = 2_000


class WrappingTool:
    """Wraps functions and puts back what it found, as `unittest.mock` and most profilers do."""

    def __init__(self):
        self._found = []
        self.calls = 0

    def join(self):
        self._found = [(owner, name, vars(owner)[name]) for owner, name in PLACES]
        for owner, name, function in self._found:
            setattr(owner, name, self._wrap(function))

    def _wrap(self, function):
        @functools.wraps(function)
        def theirs(*args, **kwargs):
            self.calls += 1
            return function(*args, **kwargs)

        return theirs

    def leave(self):
        for owner, name, function in self._found:
            setattr(owner, name, function)


#: What happens in one cycle. The watch and the tool each join before they leave.
ORDERS = [
    order
    for order in itertools.permutations(("watch joins", "watch leaves", "tool joins", "tool leaves"))
    if order.index("watch joins") < order.index("watch leaves")
    and order.index("tool joins") < order.index("tool leaves")
]


@pytest.fixture
def recorder():
    """A recorder that writes nothing: a cycle is only the hooks."""
    from compilediag.recording import Recorder

    return lambda: Recorder("unused", {})


@pytest.mark.parametrize("order", ORDERS, ids=" then ".join)
def test_wrappers_do_not_pile_up_in_whatever_order_tools_leave(order, recorder):
    originals = [vars(owner)[name] for owner, name in PLACES]
    tool = WrappingTool()
    steps = {
        "watch joins": lambda: attach_some(recorder()),
        "watch leaves": sources.detach,
        "tool joins": tool.join,
        "tool leaves": tool.leave,
    }
    for _ in range(CYCLES):
        for step in order:
            steps[step]()
    assert sources.list_hooks() == []
    depths = [
        count_wrappers(vars(owner)[name], original) for (owner, name), original in zip(PLACES, originals, strict=True)
    ]
    assert max(depths) <= 2, "at most one wrapper of each source, without effect, which the tool has put back"
    with cd.watch() as session:
        programs.numbers()
    assert len(session.recompiles) == 3
    assert [vars(owner)[name] for owner, name in PLACES] == originals, "the next watch has removed that one as well"


def attach_some(recorder):
    """The sources that watch these places, without the others, which take most of the time."""
    for cls in sources._source_classes():
        if cls.name in ("compiles", "phases", "dynamic", "fx_graph_cache"):
            source = cls(recorder, "full")
            sources._attached.append(source)
            source.begin()


def count_wrappers(function, original):
    depth = 0
    while function is not original:
        function, depth = function.__wrapped__, depth + 1
    return depth


def test_a_tool_that_puts_our_list_or_finder_back_gets_ones_without_effect():
    trace = logging.getLogger("torch.__trace")
    handlers, finders = trace.handlers, list(sys.meta_path)
    before = list(handlers)
    with cd.watch() as session:
        kept, kept_finders = trace.handlers, list(sys.meta_path)
    trace.handlers, sys.meta_path[:] = kept, kept_finders
    try:
        assert list(kept) == before and kept is not handlers
        assert late_imports.list_waiting() == []
        programs.numbers()
        with cd.watch() as later:
            torch._dynamo.reset()
            programs.numbers()
        assert len(session.recompiles) == 0 and len(later.recompiles) == 3
        assert trace.handlers is handlers, "the next watch has put torch's own list back"
    finally:
        trace.handlers, sys.meta_path[:] = handlers, finders
