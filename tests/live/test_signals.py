"""An exception of the program's signal handler that comes while a hook of ours runs reaches the program."""

import functools

import pytest
import torch

import compilediag as cd
from tests import inside
from tests.live import programs
from tests.live.interruptions import (
    MIDDLE,
    OWN,
    PACKAGE,
    Interrupter,
    TooLate,
    handle_timeout_without_arguments,
    raise_in_trace_function,
    time_out,
)

#: torch logs whatever is raised while it records its metrics, and continues; without a watch too.
SWALLOWED_BY_TORCH = ("metrics_context.py", "__exit__")


def run():
    """Compile, break a graph and recompile."""

    def function(x, n):
        y = (x * n).sum()
        torch._dynamo.graph_break()
        return y + x

    torch._dynamo.reset()
    compiled = programs.compiled(programs.renamed(function, "interrupted"))
    return [compiled(torch.ones(2), n).tolist() for n in (1, 2.5, 3)]


def strike_at(place, strike):
    """Run the program and interrupt it; "raised", "swallowed", "swallowed by torch" or "not reached"."""
    interrupter = Interrupter(OWN, place, strike)
    raised = None
    try:
        is_raised = interrupter.call(run)
    except Exception as error:  # torch raises an error of its own instead of what is raised while it compiles.
        is_raised, raised = True, error
    if not interrupter.has_raised:
        return "not reached"
    if is_raised:
        assert raised is None or TooLate.__name__ in str(raised)
        return "raised"
    by_torch = any((file.rpartition("/")[2], name) == SWALLOWED_BY_TORCH for file, name in interrupter.stack)
    return "swallowed by torch" if by_torch else "swallowed"


def strike_at_each(detail, strike, stride):
    with cd.watch(detail=detail) as session:
        results = run()
        interrupter = Interrupter(OWN)
        interrupter.call(run)
        places = interrupter.places(MIDDLE)[::stride]
        outcomes = {place: strike_at(place, strike) for place in places}
        before = len(session.compiles), len(session.recompiles)
        assert run() == results
        after = len(session.compiles), len(session.recompiles)
        assert inside.find_recorder().progress == {}, "nothing compiles, whatever hooks were interrupted"
        states = [row for row in session.status() if row["reason_code"] == "errors"]
    with cd.watch(detail=detail) as undisturbed:
        run()
    assert [place for place, outcome in outcomes.items() if outcome == "swallowed"] == []
    assert list(outcomes.values()).count("raised") > 0.8 * len(places)
    assert [b - a for a, b in zip(before, after, strict=True)] == [
        len(undisturbed.compiles),
        len(undisturbed.recompiles),
    ]
    assert states == [], "no source counts it as an error of its own"
    return {file.removeprefix(PACKAGE) for file, _, _ in places}


#: The exception, the detail, and of how many places one is interrupted; `make test` does the first of them.
CASES = [
    (time_out, "full", 24),
    (time_out, "lean", 1),
    (time_out, "full", 1),
    (functools.partial(time_out, handle_timeout_without_arguments), "full", 1),
    (raise_in_trace_function, "full", 1),
]


@pytest.mark.parametrize(
    ("strike", "detail", "stride"),
    [CASES[0], *(pytest.param(*case, marks=pytest.mark.long("interrupts many lines of hooks")) for case in CASES[1:])],
)
def test_a_timeout_at_lines_of_the_hooks_reaches_the_program(strike, detail, stride):
    assert len(strike_at_each(detail, strike, stride)) > 5
