"""Where Dynamo's time goes: how long it traces each function that it inlines into a compile, only if requested.

torch 2.13 has a profile of its own, `torch._dynamo.config.dynamo_profiler`. It prints each compile, or overwrites one
file with it, and changes what the program writes. What it measures is measured here at the same place, in all versions
of torch, and summed over all compiles.
"""

from __future__ import annotations

import hashlib
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...events import TracedFunction
from ...system import clock
from ..compile_context import PerThread
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import Source, hook, hook_before
from . import torch_api

#: Functions of one compile that are distinguished; the time of further ones is their callers' own.
MAX_FUNCTIONS = 2_000


class Traced:
    """A function that is traced, at one line of its caller: a node of the tree that begins with what is compiled.

    It keeps no code object: torch drops an entry when the code that a guard is on goes, and the writer is later.
    """

    __slots__ = ("call_line", "calls", "count", "file", "function", "inner_ns", "line", "total_ns")

    def __init__(self, code: types.CodeType, call_line: int | None):
        self.function, self.file, self.line = code.co_name, code.co_filename, code.co_firstlineno
        self.call_line = call_line
        self.count = self.total_ns = self.inner_ns = 0
        #: File, first line and name of the function, and the line of the call -> what is traced there.
        self.calls: dict[tuple[str, int, str, int | None], Traced] = {}


@dataclass(slots=True)
class _Root:
    """The compile that a tree belongs to, and the number of functions in the tree."""

    compile_id: str | None
    compile_key: str | None
    functions: int = 1
    time_ns: int = field(default_factory=clock.now_ns)


@dataclass(slots=True, eq=False)
class _Running:
    """A call of `run` that has not returned. `node` is None for a function that is not distinguished.

    `root` is that of the frame that is compiled; `output` identifies what it traces for.
    """

    node: Traced | None
    output: Any
    root: _Root
    end_ns: int | None = None
    begin_ns: int = field(default_factory=time.perf_counter_ns)


class Tracing(Source):
    """torch calls one method for each function that it traces: for the compiled one, and inside it for each that it
    inlines. That method calls itself through others, so the hook is on the stack once for each function around: a
    program at the limit of recursion would reach it earlier, which is why it is there on request.
    """

    name = "tracing"
    needs = (torch_api.COMPILE_CONTEXT,)
    on_request = True
    #: What is traced in this thread, the innermost function last.
    _running = PerThread[list[_Running]](list)

    @hook_before(torch_api.FUNCTION_TRACED)
    def _before_traced(self, args: Args, kwargs: Kwargs) -> _Running | None:
        tracer, running = args[0], self._running
        caller = getattr(tracer, "parent", None)
        if caller is None:
            root = _Root(*self.context.keys.current())
            entry = _Running(Traced(tracer.f_code, None), tracer.output, root)
        elif running:
            around = running[-1]
            node = None if around.node is None else _find_node(around.root, around.node, tracer.f_code, caller.lineno)
            entry = _Running(node, around.output, around.root)
        else:
            return None  # The watch began while this was being traced.
        running.append(entry)
        return entry

    @hook(torch_api.FUNCTION_TRACED)
    def _on_traced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, entry: _Running | None) -> None:
        running = self._running
        if entry is None or entry not in running:
            return
        while running.pop() is not entry:
            pass  # An interrupt has kept the hook of an inner function from being called.
        spent = (entry.end_ns or time.perf_counter_ns()) - entry.begin_ns
        node, is_inner = entry.node, running and running[-1].root is entry.root
        if node is not None:
            node.count += 1
            node.total_ns += spent
            if is_inner and (around := running[-1].node) is not None:
                around.inner_ns += spent
        if node is not None and not is_inner:
            self.emit(_make_rows, node, entry.root)

    @hook_before(torch_api.TRACE_COMPLETE)
    def _before_complete(self, args: Args, kwargs: Kwargs) -> None:
        """The time that follows is the backend's."""
        now = time.perf_counter_ns()
        for entry in self._running:
            if entry.output is args[0] and entry.end_ns is None:
                entry.end_ns = now


def _find_node(root: _Root, around: Traced, code: types.CodeType, line: int | None) -> Traced | None:
    """The node of a function that is called at a line of another; None if the tree is full."""
    key = code.co_filename, code.co_firstlineno, code.co_name, line
    node = around.calls.get(key)
    if node is None and root.functions < MAX_FUNCTIONS:
        root.functions += 1
        node = around.calls[key] = Traced(code, line)
    return node


def _make_rows(node: Traced, root: _Root) -> Iterator[TracedFunction]:
    waiting: list[tuple[Traced, str | None]] = [(node, None)]
    while waiting:
        node, caller = waiting.pop()
        path = (caller, node.file, node.line, node.function, node.call_line)
        key = hashlib.md5(repr(path).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:12]
        yield TracedFunction(
            time_ns=root.time_ns,
            compile_id=root.compile_id,
            compile_key=root.compile_key,
            function=node.function,
            file=node.file,
            line=node.line,
            call_line=node.call_line,
            count=node.count,
            own_s=(node.total_ns - node.inner_ns) / 1e9,
            total_s=node.total_ns / 1e9,
            stack=key,
            caller=caller,
        )
        waiting += [(each, key) for each in reversed(node.calls.values())]
