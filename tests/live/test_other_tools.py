"""Other tools that patch the same functions as a watch, and leave in whatever order."""

import functools
import itertools
import logging
import sys

import pytest
import torch
from torch._dynamo import utils
from torch._functorch._aot_autograd import autograd_cache
from torch._inductor import codecache

import compilediag as cd
from tests import inside
from tests.live import programs
from tests.tiers import quick

#: The sources that watch some functions, methods, class methods and static methods; two watch one of the functions.
WATCHING = ("compiles", "phases", "dynamic", "fx_graph_cache", "aot_autograd_cache", "code_caches")
PLACES = [
    (utils, "add_compilation_metrics_to_chromium"),
    (utils.ChromiumEventLogger, "log_event_start"),
    (utils.ChromiumEventLogger, "log_instant_event"),
    (codecache.PyCodeCache, "load_by_key_path"),
    (codecache.GuardedCache, "find_guarded_entry"),
    (autograd_cache.AOTAutogradCache, "try_load"),
]
#: More watches than Python's limit of recursion has frames.
CYCLES = 2_000


class WrappingTool:
    """Wraps functions and puts back what it found, as `unittest.mock` and most profilers do.

    With `getattr` it reads them as depyf does, which gives static methods as functions and class methods bound.
    """

    def __init__(self, read):
        self._read = read
        self._found = []
        self.calls = 0

    def join(self):
        self._found = [(owner, name, self._read(owner, name)) for owner, name in PLACES]
        for owner, name, function in self._found:
            setattr(owner, name, self._wrap(function))

    def _wrap(self, found):
        kind = type(found) if isinstance(found, (staticmethod, classmethod)) else None
        function = found.__func__ if kind else found

        @functools.wraps(function)
        def theirs(*args, **kwargs):
            self.calls += 1
            return function(*args, **kwargs)

        return kind(theirs) if kind else theirs

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


def read_own(owner, name):
    return vars(owner)[name]


@pytest.mark.parametrize(("read", "cycles"), quick([(read_own, CYCLES), (getattr, 50)], [getattr], why="many cycles"))
@pytest.mark.parametrize("order", ORDERS, ids=" then ".join)
def test_wrappers_do_not_pile_up_in_whatever_order_tools_leave(order, read, cycles, monkeypatch):
    originals = [vars(owner)[name] for owner, name in PLACES]
    for (owner, name), original in zip(PLACES, originals, strict=True):
        monkeypatch.setattr(owner, name, original)  # What the tool puts back is bound.
    tool, detach = WrappingTool(read), inside.attach(WATCHING)
    detach()
    # Sources that watch these places, without the others, which take most of the time; nothing is recorded.
    steps = {
        "watch joins": lambda: inside.attach(WATCHING),
        "watch leaves": detach,
        "tool joins": tool.join,
        "tool leaves": tool.leave,
    }
    for _ in range(cycles):
        for step in order:
            steps[step]()
    assert inside.list_hooks() == []
    depths = [
        count_wrappers(vars(owner)[name], plain(original))
        for (owner, name), original in zip(PLACES, originals, strict=True)
    ]
    assert max(depths) <= 2, "at most one wrapper of each source, without effect, which the tool has put back"
    with cd.watch() as session:
        programs.numbers()
    assert len(session.recompiles) == 3
    found = [vars(owner)[name] for owner, name in PLACES]
    assert [*map(plain, found)] == [*map(plain, originals)], "the next watch has removed that one as well"
    assert read is getattr or found == originals


def count_wrappers(function, original):
    depth = 0
    while plain(function) is not original:
        function, depth = plain(function).__wrapped__, depth + 1
    return depth


def plain(method):
    """The function of a static, class or bound method."""
    return getattr(method, "__func__", method)


def test_a_tool_that_puts_our_list_or_finder_back_gets_ones_without_effect():
    trace = logging.getLogger("torch.__trace")
    handlers, finders = trace.handlers, list(sys.meta_path)
    before = list(handlers)
    with cd.watch() as session:
        kept, kept_finders = trace.handlers, list(sys.meta_path)
    trace.handlers, sys.meta_path[:] = kept, kept_finders
    try:
        assert list(kept) == before and kept is not handlers
        assert inside.list_late_imports() == []
        programs.numbers()
        with cd.watch() as later:
            torch._dynamo.reset()
            programs.numbers()
        assert len(session.recompiles) == 0 and len(later.recompiles) == 3
        assert trace.handlers is handlers, "the next watch has put torch's own list back"
    finally:
        trace.handlers, sys.meta_path[:] = handlers, finders


def test_a_class_method_that_a_tool_has_put_back_bound_is_recorded(monkeypatch):
    owner, name = codecache.PyCodeCache, "load_by_key_path"
    monkeypatch.setattr(owner, name, vars(owner)[name])
    setattr(owner, name, getattr(owner, name))  # depyf does so when it leaves.
    with cd.watch() as session:
        torch.compile(lambda x: x * 2)(torch.ones(3))
    assert "py_code" in set(session.cache_lookups["cache"])
    assert {row["reason"] for row in session.status() if row["name"] == "code_caches"} == {None}
