"""What Dynamo traces: its seconds by function, and the loops that it unrolls."""

import collections
import itertools
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import compilediag as cd
from compilediag.errors import CompilediagError
from compilediag.events import Compile, Phase, TracedFunction

HERE = __file__


def twice(x):
    return once(once(x))


def once(x):
    return torch.relu(x) + 1


def nested(x):
    x = once(x)
    return twice(x) * 2


def broken(x):
    x = once(x)
    print("a graph break", file=sys.stderr)
    return once(x)


def values(n):
    for k in range(n):
        yield k + 1


def from_generator(x):
    for k in values(3):
        x = x + k
    return x


def fails(x):
    once(x)
    raise ValueError("the program's own")


def watch(function, *calls, detail="full", backend="eager", tracing=True):
    """The session in which a function was compiled and called with each of `calls`."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    with cd.watch(detail=detail, tracing=tracing) as session:
        for x in calls or (torch.ones(4),):
            compiled(x)
    torch._dynamo.reset()
    return session


def describe(session):
    """(function, its caller, line of the call, how often) of each row, as a set."""
    rows = session.data.rows(TracedFunction)
    names = {row.stack: row.function for row in rows}
    return {(row.function, names.get(row.caller), row.call_line, row.count) for row in rows}


def line_of(function, text):
    """The number of the first line of a function that contains a text."""
    lines = Path(HERE).read_text().splitlines()
    first = function.__code__.co_firstlineno
    return next(n for n, line in enumerate(lines[first:], first + 1) if text in line)


def test_each_function_is_below_the_line_that_calls_it():
    assert describe(watch(nested)) == {
        ("nested", None, None, 1),
        ("once", "nested", line_of(nested, "once(x)"), 1),
        ("twice", "nested", line_of(nested, "twice(x)"), 1),
        # Both calls are on one line.
        ("once", "twice", line_of(twice, "once(once(x))"), 2),
    }


def test_seconds_add_up_and_are_those_of_torchs_own_phase():
    session = watch(nested)
    rows = session.data.rows(TracedFunction)
    (root,) = [row for row in rows if row.caller is None]
    assert all(0 <= row.own_s <= row.total_s for row in rows)
    assert sum(row.own_s for row in rows) == pytest.approx(root.total_s)
    for row in rows:
        inner = sum(each.total_s for each in rows if each.caller == row.stack)
        assert row.own_s + inner == pytest.approx(row.total_s)
    # torch measures from just before to just after, the time of its own hooks included.
    (phase,) = [row for row in session.data.rows(Phase) if row.name == "bytecode_tracing"]
    assert root.total_s <= phase.duration_s and root.compile_key == phase.compile_key is not None


def test_what_the_backend_takes_is_not_tracing():
    entered = []

    def slow(graph, inputs):
        entered.extend(watching.data.rows(TracedFunction))
        for _ in range(200_000):
            pass
        return graph.forward

    torch._dynamo.reset()
    with cd.watch(tracing=True) as watching:
        torch.compile(nested, backend=slow)(torch.ones(4))
    (compile,) = watching.data.rows(Compile)
    (root,) = [row for row in watching.data.rows(TracedFunction) if row.caller is None]
    assert entered == [] and root.total_s < compile.dynamo_s - compile.aot_s


def test_a_frame_that_begins_again_after_a_graph_break_is_traced_again():
    found = watch(broken)
    counts = collections.Counter()
    for row in found.data.rows(TracedFunction):
        counts[row.function, row.call_line] += row.count
    assert counts["broken", None] == 2
    assert counts["once", line_of(broken, "x = once(x)")] == 2
    assert counts["once", line_of(broken, "return once(x)")] == 1


def test_a_generator_counts_for_each_value():
    counts = {row.function: row.count for row in watch(from_generator).data.rows(TracedFunction)}
    assert counts["from_generator"] == 1 and counts["values"] >= 3


def test_the_programs_exception_passes_and_what_was_traced_is_recorded():
    with pytest.raises(ValueError, match="the program's own"), cd.watch(tracing=True) as session:
        torch.compile(fails, backend="eager")(torch.ones(4))
    assert {"fails", "once"} <= {row.function for row in session.data.rows(TracedFunction)}


def test_recompiles_have_rows_of_their_own_under_the_same_stacks():
    session = watch(nested, torch.ones(4), torch.ones(5), torch.ones(4, 4))
    rows = session.data.rows(TracedFunction)
    assert len({row.compile_key for row in rows}) == 3
    assert len({row.stack for row in rows}) == 4
    assert session.trace_functions["count"].sum() == 3 * 5


def test_without_a_request_it_is_left_out_and_says_so():
    session = watch(nested, tracing=False)
    (state,) = [row for row in session.status() if row["name"] == "tracing"]
    assert (state["status"], state["reason_code"]) == ("off", "not_requested")
    assert len(session.trace_functions) == 0
    assert len(session.figure("tracing").data) == 0
    with pytest.raises(CompilediagError, match="tracing=True"):
        session.export("never.json", format="speedscope")


# Loops


def looped(x):
    for k in range(20):
        x = torch.tanh(x) + k
    return x


def with_while(x):
    k = 0
    while k < 20:
        k += 1
        x = torch.tanh(x)
    return x


def comprehended(x):
    return sum([torch.relu(x + k) for k in range(20)])


def called(x):
    for _ in range(20):
        x = once(x)
    return x


def chained(x):
    for k in itertools.chain(range(10), range(10)):
        x = torch.tanh(x) + k
    return x


def recursive(x, depth=20):
    return x if depth == 0 else recursive(torch.tanh(x), depth - 1)


def few(x):
    for _ in range(5):
        x = torch.tanh(x)
    return x


def mostly_something_else(x):
    for _ in range(16):
        x = torch.tanh(x)
    x = x.abs().exp().sin().cos().sqrt() + 1
    x = x.abs().exp().sin().cos().sqrt() - 2
    return x.abs().exp().sin().cos().sqrt() * 3


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(20))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.linear(x)) * 2


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, x):
        for _ in range(20):
            x = self.cell(x)
        return x


def get_loop(function, **options):
    (row,) = watch(function, **options).data.rows(Compile)
    return row.loop


def test_the_body_is_the_function_or_the_module_that_the_loop_calls():
    assert [get_loop(called)[name] for name in ("body", "module")] == ["once", None]
    with torch.no_grad():
        assert [get_loop(Steps())[name] for name in ("body", "module")] == ["forward", "L['self'].cell"]
    assert [get_loop(looped)[name] for name in ("body", "module")] == [None, None]


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_a_loop_that_is_unrolled_is_named_with_its_line(detail):
    for function in (looped, with_while, comprehended, called, chained):
        loop = get_loop(function, detail=detail)
        keyword = "while" if function is with_while else "for "
        assert (loop["file"], loop["line"]) == (HERE, line_of(function, keyword))
        assert (loop["function"], loop["count"]) == (function.__name__, 20)
        assert keyword in loop["code"] and loop["count"] * loop["ops"] <= loop["graph_ops"]


def test_what_is_no_loop_or_a_small_one_or_has_no_source_is_no_note():
    names = {}
    code = "def hidden(x):\n    for _ in range(20):\n        x = x.tanh()\n    return x"
    exec(compile(code, "<made>", "exec"), names)
    with torch.no_grad():
        for function in (recursive, few, mostly_something_else, nested, Layers(), names["hidden"]):
            assert get_loop(function) is None
