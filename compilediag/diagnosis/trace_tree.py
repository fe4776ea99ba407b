"""What Dynamo traced, as one tree of all compiles: the compiled functions, and what each inlines at which line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..decode.call_stacks import is_torch_file
from ..events import TracedFunction
from .causes.call_sites import read_own_code
from .evidence import Evidence, Place, get_place, group_by, is_timed, kept, sum_seconds

#: Whose code a function is: the user's, that of an installed package or Python's, torch's.
YOURS, LIBRARIES, TORCH = "your code", "libraries", "torch"


@dataclass(frozen=True, eq=False)
class TracedCalls:
    """The calls of a function at one line of its caller, of all compiles: how often, and s of tracing.

    `calls` are those that it makes. `owner` is one of YOURS, LIBRARIES and TORCH.
    """

    place: Place
    call_line: int | None
    count: int
    own_s: float
    total_s: float
    owner: str
    calls: tuple[TracedCalls, ...]


@kept
def build_trace_tree(evidence: Evidence) -> tuple[TracedCalls, ...]:
    """The compiled functions with what they inline, most seconds first; empty if nothing was recorded."""
    groups = group_by(evidence.rows(TracedFunction), lambda row: row.stack)
    by_caller: dict[str | None, list[str | None]] = defaultdict(list)
    for stack, rows in groups.items():
        by_caller[rows[0].caller].append(stack)
    # Of a damaged file: what has no caller begins a tree, and what is its own caller is in none.
    roots = [
        stack for caller, stacks in by_caller.items() if caller is None or caller not in groups for stack in stacks
    ]
    order, waiting = [], list(roots)
    while waiting:
        stack = waiting.pop()
        order.append(stack)
        waiting += by_caller.get(stack, ()) if stack is not None else ()
    made: dict[str | None, TracedCalls] = {}
    own = read_own_code(evidence)
    for stack in reversed(order):
        rows, first = groups[stack], groups[stack][0]
        owner = YOURS if own.is_own(first.file, first.function) else LIBRARIES
        below = [made[each] for each in by_caller.get(stack, ()) if each in made] if stack is not None else []
        made[stack] = TracedCalls(
            place=get_place(first),
            call_line=first.call_line,
            count=sum(row.count or 0 for row in rows),
            own_s=sum_seconds(row.own_s for row in rows),
            total_s=sum_seconds(row.total_s for row in rows),
            owner=TORCH if first.file is not None and is_torch_file(first.file) else owner,
            calls=_sort_calls(below),
        )
    return _sort_calls(made[stack] for stack in roots)


def _sort_calls(calls: Iterable[TracedCalls]) -> tuple[TracedCalls, ...]:
    """Most seconds first."""
    return tuple(sorted(calls, key=lambda each: -each.total_s))


def walk_trace_tree(roots: Sequence[TracedCalls]) -> Iterator[tuple[TracedCalls, tuple[TracedCalls, ...]]]:
    """Each function of the tree with its callers, outermost first; a function comes before those that it calls."""
    waiting: list[tuple[TracedCalls, tuple[TracedCalls, ...]]] = [(root, ()) for root in reversed(roots)]
    while waiting:
        calls, callers = waiting.pop()
        yield calls, callers
        waiting += [(each, (*callers, calls)) for each in reversed(calls.calls)]


@dataclass
class FunctionTrace:
    """What tracing one of the user's functions took, wherever it is inlined: s of its own and of the library code that
    it calls, without the other functions of the user's.
    """

    place: Place
    count: int = 0
    seconds: float = 0.0
    #: False if it is compiled itself, too.
    is_inlined: bool = True


@kept
def sum_user_functions(evidence: Evidence) -> tuple[FunctionTrace, ...]:
    """The user's functions, most seconds first."""
    found: dict[Place, FunctionTrace] = {}
    for calls, callers in walk_trace_tree(build_trace_tree(evidence)):
        owner = next((each for each in (calls, *reversed(callers)) if each.owner == YOURS), None)
        if owner is None or not is_timed(calls.own_s):
            continue
        trace = found.setdefault(owner.place, FunctionTrace(owner.place))
        trace.seconds += calls.own_s
        if owner is calls:
            trace.count += calls.count
            trace.is_inlined = trace.is_inlined and bool(callers)
    return tuple(sorted(found.values(), key=lambda trace: -trace.seconds))
