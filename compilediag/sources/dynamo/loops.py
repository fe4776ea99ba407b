"""Python loops that Dynamo unrolls: the same line is in a graph once for each time that the loop went over it."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...decode.call_stacks import is_torch_file
from ...system.interrupts import pass_on
from .torch_api import TracedOp

#: So many iterations are worth a note, if their operations are this share of the graph.
MIN_ITERATIONS = 16
MIN_SHARE = 0.5
#: The share of the loop's operations that a function has to contain to be its body.
_BODY_SHARE = 0.75
#: Characters of a line that are kept.
_MAX_CODE = 200
_FORWARD = "forward"
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>[^\n]+)$', re.M)
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Frame(NamedTuple):
    file: str
    line: int
    function: str


def find_unrolled_loop(ops: Sequence[TracedOp]) -> dict[str, Any] | None:
    """The loop that most operations of a graph come from; None without one of `MIN_ITERATIONS`.

    Returns file, line, function and code of the loop, count (how often its body is in the graph), ops (operations of
    each), graph_ops, and body and module: the function that the loop calls, and the path of the module whose forward
    that is; None if most of its operations are not in one.

    Operations of other modules are others: a loop over layers is none. A function that is called in a loop has its
    operations as often, so the loop is looked for in the user's source, from the innermost frame that they share.
    """
    counts = Counter(op for op in ops if op[0] is not None)
    sizes = Counter(count for count in counts.values() if count >= MIN_ITERATIONS)
    if not sizes:
        return None
    count = max(sizes, key=lambda count: count * sizes[count])
    if count * sizes[count] < MIN_SHARE * len(ops):
        return None
    repeated = [op for op, times in counts.items() if times == count]
    stacks = [
        [_Frame(each["file"], int(each["line"]), each["function"]) for each in _FRAME.finditer(text or "")]
        for text, *_ in repeated
    ]
    found = _find_loop(stacks)
    if found is None:
        return None
    depth, line = found
    file, _, function = stacks[0][depth]
    body = _find_body(stacks, depth)
    paths = [op[1] for op, stack in zip(repeated, stacks, strict=True) if _is_in(stack, depth, body)]
    return {
        "file": file,
        "line": line,
        "function": function,
        "code": linecache.getline(file, line).strip()[:_MAX_CODE] or None,
        "count": count,
        "ops": len(stacks),
        "graph_ops": len(ops),
        "body": body,
        "module": _find_module(paths) if body == _FORWARD else None,
    }


def _find_loop(stacks: Sequence[Sequence[_Frame]]) -> tuple[int, int] | None:
    """The depth of the frame in which a loop runs all stacks, and the line of the loop; None if it is in none."""
    first = stacks[0]
    shared = 0
    while all(len(stack) > shared and stack[:shared] == first[:shared] for stack in stacks) and all(
        (stack[shared].file, stack[shared].function) == (first[shared].file, first[shared].function) for stack in stacks
    ):
        shared += 1
    for depth in reversed(range(shared)):
        lines = [stack[depth].line for stack in stacks]
        line = None if is_torch_file(first[depth].file) else find_loop_around(first[depth].file, lines)
        if line is not None:
            return depth, line
    return None


def _find_body(stacks: Sequence[Sequence[_Frame]], depth: int) -> str | None:
    called = Counter(stack[depth + 1].function for stack in stacks if len(stack) > depth + 1)
    name, ops = max(called.items(), key=lambda item: item[1], default=(None, 0))
    return name if ops >= _BODY_SHARE * len(stacks) else None


def _is_in(stack: Sequence[_Frame], depth: int, body: str | None) -> bool:
    return len(stack) > depth + 1 and stack[depth + 1].function == body


def _find_module(paths: Sequence[tuple[str, ...]]) -> str | None:
    """The innermost module around all of the operations."""
    shared = [paths[0][depth] for depth in range(min(map(len, paths))) if len({path[depth] for path in paths}) == 1]
    return shared[-1] if shared else None


def find_loop_around(file: str, lines: Iterable[int]) -> int | None:
    """The first line of the innermost loop of a file that contains these lines; None if none does, or the source can't
    be read.
    """
    first, last = min(lines := [*lines]), max(lines)
    around = [(begin, end) for begin, end in _list_loops(file, "".join(linecache.getlines(file))) if begin <= first]
    return max((begin for begin, end in around if last <= end), default=None)


@functools.lru_cache(64)
def _list_loops(file: str, text: str) -> tuple[tuple[int, int], ...]:
    """First and last line of each loop."""
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        pass_on(error)
        return ()
    return tuple((node.lineno, node.end_lineno or node.lineno) for node in nodes if isinstance(node, _LOOPS))
