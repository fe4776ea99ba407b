"""What happens in a compile: its metrics, its phases, the graph breaks, what torch made dynamic by itself, and the
loops that it unrolled: the same line is in a graph once for each time that the loop went over it.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
import types
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple, TypedDict

from ...decode.call_stacks import is_called_code, is_torch_file
from ...decode.records.compilation_metrics import (
    AOT_COMPILE,
    ATTEMPT_PREFIX,
    AUTOMATIC_DYNAMIC,
    FLOOR_NS,
    clean_compile_id,
    is_phase_kept,
    make_compile,
    make_dynamic_decision,
    make_phase,
    read_static_sources,
)
from ...decode.records.torch_messages import parse_graph_break
from ...events import Compile
from ...system import clock
from ...system.interrupts import pass_on
from ...system.own_errors import describe_error
from ..compile_context import MAX_WAITING, EventSink, Made, PerThread, code_columns
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import CountingSource, Source, hook, hook_before
from ..hooks.torch_names import call_argument, caller_frames, find_frame
from . import torch_api
from .stack_frames import add_call_stack, frames_outside
from .torch_api import TracedOp, compiles_frame, get_setting, is_conversion

#: So many iterations are worth a note, if their operations are this share of the graph.
MIN_ITERATIONS = 16
MIN_SHARE = 0.5
#: The share of the loop's operations that a function has to contain to be its body.
_BODY_SHARE = 0.75
#: Characters of a line that are kept.
_MAX_CODE = 200
_FORWARD = "forward"
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>[^\n]+)$', re.M)


# Unrolled loops

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
    called = [stack[depth + 1].function if len(stack) > depth + 1 else None for stack in stacks]
    [(body, times)] = Counter(called).most_common(1)
    body = body if times >= _BODY_SHARE * len(stacks) else None
    shared: list[str] = []
    if body == _FORWARD:
        paths = [op[1] for op, name in zip(repeated, called, strict=True) if name == body]
        shared = [paths[0][n] for n in range(min(map(len, paths))) if len({path[n] for path in paths}) == 1]
    return {
        "file": file,
        "line": line,
        "function": function,
        "code": linecache.getline(file, line).strip()[:_MAX_CODE] or None,
        "count": count,
        "ops": len(stacks),
        "graph_ops": len(ops),
        "body": body,
        "module": shared[-1] if shared else None,
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
        file, lines = first[depth].file, [stack[depth].line for stack in stacks]
        top, bottom = min(lines), max(lines)
        loops = () if is_torch_file(file) else _list_loops(file, "".join(linecache.getlines(file)))
        around = [begin for begin, end in loops if begin <= top and bottom <= end]
        if around:
            return depth, max(around)
    return None


@functools.lru_cache(64)
def _list_loops(file: str, text: str) -> tuple[tuple[int, int], ...]:
    """First and last line of each loop; none if the source can't be read."""
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        pass_on(error)
        return ()
    return tuple((node.lineno, node.end_lineno or node.lineno) for node in nodes if isinstance(node, _LOOPS))


# Compiles of `aot_compile`: torch reports their times without the function, after the compile's context is gone.

#: Frames between the hook on the metrics and the function that compiles.
AHEAD_DEPTH = 12


def find_compiled_ahead() -> tuple[types.CodeType, dict[str, Any]] | None:
    """The function that `aot_compile` compiles in this thread, and the columns of its compile; None if none does."""
    frame = find_frame(AHEAD_DEPTH, torch_api.AOT_COMPILE.module, torch_api.AOT_COMPILE.name)
    local = {} if frame is None else frame.f_locals
    code = None if frame is None else torch_api.traced_code(local.get("model"))
    if code is None:
        return None
    backend = torch_api.backend_name(local.get("backend"))
    graph = getattr(getattr(local.get("backend_input"), "graph_module", None), "graph", None)
    operations = None if graph is None else sum(map(torch_api.is_call, graph.nodes))
    known = {**code_columns(code), "backend": backend, "trigger": AOT_COMPILE, "attempt": 0}
    return code, {**known, "graph_ops": operations, "stack": None}


# What torch does about a compile that fails: it raises the exception, or runs the function uncompiled.

#: Frames between the hook on the metrics and those that convert the function.
FAILURE_DEPTH = 40
_BREAK, _LIMIT_RAISED = "Unsupported", "FailOnRecompileLimitHit"


class FailureColumns(TypedDict):
    """The columns of a failed compile that torch's metrics lack."""

    on_failure: str
    limit: str | None
    limit_value: int | None
    limit_argument: bool | None


def read_failure(fail_type: str) -> FailureColumns | None:
    """What torch does about the failure whose metrics it records in this thread; None outside of a conversion.

    The frame that compiles is called by one that raises whatever it gets (`fullgraph=True`), and that one, without
    fullgraph, by one that runs the function uncompiled after some exceptions.
    """
    frames = [frame for frame in caller_frames(FAILURE_DEPTH) if is_conversion(frame)]
    if not frames or not compiles_frame(frames[0]):
        return None
    local = frames[0].f_locals
    is_hit = bool(local.get("exceeded"))
    limit = local.get("limit_type") if is_hit else None
    converters = [frame.f_locals.get("self") for frame in frames[1:2]]
    is_argument = any(getattr(each, torch_api.OWN_LIMIT.name, None) is not None for each in converters)
    return {
        "on_failure": _find_handling(fail_type, local, frames[1:]),
        "limit": limit,
        "limit_value": get_setting(limit) if limit else None,
        "limit_argument": is_argument if limit == "recompile_limit" else None,
    }


def _find_handling(fail_type: str, local: dict[str, Any], callers: Sequence[FrameType]) -> str:
    if local.get("one_graph"):
        is_hit = fail_type == _LIMIT_RAISED and not get_setting("fail_on_recompile_limit_hit")
        return "fullgraph" if fail_type == _BREAK or is_hit else "raised"
    # After these torch runs a function uncompiled: since 2.13 also after wrong use.
    handlers = [frame.f_code.co_names for frame in callers if "suppress_errors" in frame.f_code.co_names]
    soft = (_BREAK, "UserError") if any("UserError" in names for names in handlers) else (_BREAK,)
    is_soft = fail_type in soft
    if getattr(local.get("convert_frame_box"), "error_on_graph_break", False):
        return "error_on_graph_break" if is_soft else "raised"
    return "eager" if is_soft or get_setting("suppress_errors") else "raised"


#: Fields of the metrics that are times but no parts of the compile.
_NO_PARTS = ("start_time_us", "end_time_us", "guard_latency_us")


class Compiles(Source):
    """torch's own metrics of every compile, forward, backward and compiled autograd, as they are recorded.

    A capture of `torch.compiler.precompile` has no metrics, so it is timed here.
    """

    name = "compiles"
    needs = (torch_api.COMPILE_CONTEXT,)
    #: Id and key of what `aot_compile` captured last in this thread.
    _captured = PerThread[tuple[str | None, str | None]](lambda: (None, None))

    @hook_before(torch_api.CAPTURE, optional=True)
    def _before_capture_ahead(self, args: Args, kwargs: Kwargs) -> None:
        self._captured = self.context.keys.current()

    @hook(torch_api.METRICS_RECORDED)
    def _on_recorded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        metrics = call_argument(args, kwargs, 0, "c")
        is_nameless = metrics.compile_id is None and metrics.co_name is None
        ahead = find_compiled_ahead() if is_nameless else None
        if ahead is not None:
            code, known = ahead
            known["compile_id"], key = self._captured
            del self._captured
            around = frames_outside(None, torch_api.AOT_COMPILE.module)
            self.emit(add_call_stack, self.context.stacks, known, code, around, clock.now_ns())
        else:
            key = self.context.keys.match(metrics.compile_id)
            # Not a copy: the writer's thread adds the call stack to it.
            known = self.context.frames.get(key or "", {})
            if metrics.fail_type is not None:
                known.update(read_failure(metrics.fail_type) or {})
                known["traced"] = torch_api.traced_stack(sys.exception())
        self.emit(self._make_rows, metrics, known, key, get_ident())

    def _make_rows(self, metrics: Any, known: Mapping[str, Any], key: str | None, thread: int) -> Made:
        if static := read_static_sources(vars(metrics)):
            self.recorder.facts.static_sources = static
        event = make_compile(_correct_times(vars(metrics)), known, key, thread)
        if event is not None and (user := _find_user_frame(known.get("traced", ()))) is not None:
            event = replace(event, user_file=user.filename, user_line=user.lineno)
        return [] if event is None else [event]

    @hook(torch_api.PRECOMPILED, before=Source.note_time)
    def _on_captured(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, time_ns: int | None) -> None:
        if time_ns is None:
            return
        row = Compile(
            time_ns=time_ns,
            duration_s=(clock.now_ns() - time_ns) / 1e9,
            # torch has no CompileId object for it.
            compile_key=self.context.keys.assign(object()),
            trigger="precompile",
            is_recompile=False,
            outcome="ok" if error is None else "failed",
            fail_type=None if error is None else type(error).__name__,
            fail_reason=None if error is None else describe_error(error),
            thread=get_ident(),
            **torch_api.describe_capture(args[0]),
        )
        self.emit_event(row)


def _correct_times(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """torch's metrics with the times of the recording's clock: torch reads the wall clock, which may have been stepped.

    Durations that include the step are known only by being impossible.
    """
    start_us, end_us = metrics.get("start_time_us"), metrics.get("end_time_us")
    if start_us is None or end_us is None:
        return metrics
    start, end = clock.convert(start_us * 1000) // 1000, clock.convert(end_us * 1000) // 1000
    step, longest = (end_us - start_us) - (end - start), end - start
    if not step and start == start_us:
        return metrics
    corrected = {**metrics, "start_time_us": start, "end_time_us": end}
    for name, value in metrics.items():
        if name.endswith("_us") and name not in _NO_PARTS and isinstance(value, int):
            found = (each for each in (value, value - step) if 0 <= each <= longest)
            corrected[name] = next(found, None)
    return corrected


FRAME = "entire_frame_compile"
BACKWARD = "entire_backward_compile"
BACKEND = "backend_compile"
_ENTERING = (FRAME, BACKWARD)
#: Phases at whose start something is read.
_NOTED = frozenset({FRAME, BACKWARD, BACKEND})
#: Name, parent, depth, start and end in ns, compile id as torch announces it, compile key.
EndedPhase = tuple[str, str | None, int, int, int, str | None, str | None]
#: Attempts whose functions are remembered, for the backwards that come later.
MAX_FRAMES = 10_000


class CompilingThread:
    """What one thread compiles: the phases that it is in, and the frames, nested where compiles are."""

    __slots__ = ("compile_key", "frames", "keys", "metadata", "stack")

    def __init__(self) -> None:
        self.stack: list[tuple[str, int]] = []
        self.frames: list[tuple[int, dict[str, Any]]] = []
        #: What torch says of the phase that started last.
        self.metadata: Mapping[str, Any] = {}
        self.compile_key: str | None = None
        #: Keys of the attempts that began here, by the text of their id.
        self.keys: dict[str | None, str | None] = {}

    def enter(self, frame: dict[str, Any]) -> None:
        self.frames.append((len(self.stack), frame))

    def end(self, name: str) -> int | None:
        """Forget a phase that has ended and the frames that started in it. Returns when it started; None if the watch
        began later.
        """
        stack, frames = self.stack, self.frames
        if not stack or stack[-1][0] != name:
            if name not in [n for n, _ in stack]:
                return None
            while stack[-1][0] != name:
                stack.pop()  # torch repairs its own stack the same way when an inner phase has no end.
        _, start_ns = stack.pop()
        while frames and frames[-1][0] >= len(stack):
            frames.pop()
        return start_ns

    def state(self) -> dict[str, Any]:
        """What a view shows of it, as JSON values."""
        stack, frames = list(self.stack), list(self.frames)  # They belong to another thread, which changes them.
        frame = frames[-1][1] if frames else {}
        return {
            **{name: frame.get(name) for name in ("function", "file", "line", "trigger")},
            "compile_id": clean_compile_id(self.metadata.get("compile_id")),
            "compile_key": self.compile_key,
            "phases": [name for name, _ in stack],
            "started_ns": stack[0][1] if stack else None,
        }


class Phases(CountingSource):
    """torch announces the start and end of everything that it times. Also: what compiles just now."""

    name = "phases"
    interval_s = 0.0
    needs = (torch_api.COMPILE_CONTEXT,)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._keys, self._is_full = self.context.keys, detail == "full"
        #: Thread -> what it compiles; the recorder's.
        self._threads: dict[int, CompilingThread] = recorder.progress  # type: ignore[assignment]
        #: Phases that have ended since the last batch, of all threads in one order, which is that of torch's log.
        self._ended: deque[EndedPhase] = deque()

    def close(self) -> None:
        super().close()
        self.recorder.progress.clear()

    def take_counts(self) -> list[tuple[Any, ...]]:
        ended = [self._ended.popleft() for _ in range(len(self._ended))]
        return [(lambda: [make_phase(*phase) for phase in ended],)] if ended else []

    def forget_calls(self) -> None:
        super().forget_calls()
        self.recorder.progress.pop(get_ident(), None)

    # The two hooks run some twenty times per compile, when nothing of ours is in the processor's caches: they are
    # cheap because they touch little.

    @hook(torch_api.EVENT_START)
    def _on_started(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, time_ns = args[1], clock.convert(args[2])
        running = self._threads.get(get_ident()) or self._threads.setdefault(get_ident(), CompilingThread())
        running.metadata = args[3]
        if name in _NOTED or name.startswith(ATTEMPT_PREFIX):
            self._enter(running, name)
        running.stack.append((name, time_ns))

    def _enter(self, running: CompilingThread, name: str) -> None:
        if name in _ENTERING:
            compile_id, running.compile_key = self._keys.current()
            running.keys[compile_id] = running.compile_key
        if name == FRAME:
            running.enter(self._read_frame(running.compile_key))
        elif name == BACKWARD:
            known = self.context.frames.get(running.compile_key or "", {})
            running.enter({**known, "trigger": "lazy_backward"})
        elif running.frames:
            frame = running.frames[-1][1]
            if name != BACKEND:
                frame["attempt"] = int(name[len(ATTEMPT_PREFIX) :])
                return
            # The graph that goes to the backend: what repeats in it is found out in the writer's thread.
            graph = torch_api.compiling_graph()
            if graph is not None and len(graph.nodes) >= MIN_NODES:
                self.emit(_add_repeated, frame, *torch_api.read_ops(graph))

    @hook(torch_api.EVENT_END)
    def _on_ended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, end_ns = args[1], args[2]
        running = self._threads.get(get_ident())
        if running is None or (start_ns := running.end(name)) is None:
            return
        if not running.stack:
            self._threads.pop(get_ident(), None)
        # In `lean`, most are short.
        if not self._is_full and 0 <= end_ns - start_ns < FLOOR_NS:
            return
        end_ns, compile_id, stack = clock.convert(end_ns), args[3].get("compile_id"), running.stack
        if not is_phase_kept(name, end_ns - start_ns, self._is_full):
            return
        if len(self._ended) >= MAX_WAITING:
            self.dropped += 1
            return
        key = running.keys.get(compile_id) or self._keys.match(clean_compile_id(compile_id))
        parent = stack[-1][0] if stack else None
        self._ended.append((name, parent, len(stack), start_ns, end_ns, compile_id, key))

    def _read_frame(self, key: str | None) -> dict[str, Any]:
        """The function whose compile starts; remembered for its backward, which is announced without a name."""
        compiling = torch_api.compiling_code()
        if compiling is None:
            return {}
        code, backend = compiling
        frame = {
            **code_columns(code),
            "backend": torch_api.backend_name(backend),
            "trigger": "dynamo",
            "attempt": 0,
            "region": torch_api.current_region(),
            "stack": None,
        }
        # torch's own dynamo_start lists the same frames, but leaves out the innermost callers.
        around = frames_outside(None, torch_api.CONVERT)
        self.emit(add_call_stack, self.context.stacks, frame, code, around, clock.now_ns())
        if len(self.context.frames) >= MAX_FRAMES:
            self.context.frames.clear()
        if key is not None:
            self.context.frames[key] = frame
        return frame


def _add_repeated(frame: dict[str, Any], ops: list[torch_api.ModuleOp], traced: Sequence[torch_api.TracedOp]) -> None:
    """Add the repeated blocks and the unrolled loop to what is known of a compile, before its row is made."""
    frame["blocks"] = find_repeated_blocks(ops)
    frame["loop"] = find_unrolled_loop(traced)


class GraphBreaks(Source):
    """torch creates one reason per break, with the user's stack."""

    name = "graph_breaks"
    needs = (torch_api.COMPILE_CONTEXT,)

    @hook(torch_api.GRAPH_BREAK)
    def _broke(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        reason = args[0]
        if reason.graph_break:
            stack = list(reason.user_stack or ())
            text = str(reason.reason)
            if text.startswith(torch_api.JUMP):
                text = torch_api.jump_text() or text
            self.emit(_make_break_row, text, stack, clock.now_ns(), *self.context.keys.current())


def _make_break_row(text: str, stack: Sequence[Any], time_ns: int, compile_id: str | None, key: str | None) -> Made:
    """To read the user's line a file is opened, so this runs in the writer's thread."""
    user = _find_user_frame(stack)
    file, line, source = (user.filename, user.lineno, user.line) if user is not None else (None, None, None)
    return parse_graph_break(text, time_ns, compile_id, file, line, source, compile_key=key)


def _find_user_frame(traced: Sequence[Any]) -> Any:
    """The user's frame of those that torch traced, outside torch and Python's library. If all are there, the innermost
    one; None if there is none.
    """
    frames = traced[::-1]
    return next((frame for frame in frames if not is_called_code(frame.filename)), next(iter(frames), None))


class DynamicDecisions(Source):
    """Automatic dynamic shapes: which input or attribute torch made dynamic by itself, and why."""

    name = "dynamic"
    needs = (torch_api.COMPILE_CONTEXT,)

    @hook(torch_api.INSTANT_EVENT)
    def _on_announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        _, name, time_ns, metadata, *_ = (*args, None)
        if name == AUTOMATIC_DYNAMIC and metadata:
            _, key = self.context.keys.current()
            self.emit(make_dynamic_decision, dict(metadata), clock.convert(time_ns), key)


# Identical blocks of one graph: modules of one class that make the same calls on the same sizes

#: So many identical blocks are worth a note, if each has so many calls.
MIN_BLOCKS = 3
MIN_OPS = 4
#: In a graph with fewer nodes nothing repeats that often, neither blocks nor a loop.
MIN_NODES = min(MIN_BLOCKS * MIN_OPS, MIN_ITERATIONS)


def find_repeated_blocks(ops: Iterable[torch_api.ModuleOp]) -> dict[str, Any] | None:
    """The class of modules whose identical copies make up most of a graph; None without `MIN_BLOCKS` of one class.

    Returns class (its qualified name), module (where it is defined), path (of the first block), count (of blocks), ops
    (calls of each) and graph_ops (calls of the graph).
    """
    calls: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    classes: dict[str, Any] = {}
    total = 0
    for modules, call in ops:
        total += 1
        for path, cls in modules:
            calls[path].append(call)
            classes[path] = cls
    alike: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for path, made in calls.items():
        if len(made) >= MIN_OPS:
            alike[classes[path], tuple(made)].append(path)
    groups = [(paths, len(made)) for (_, made), paths in alike.items() if len(paths) >= MIN_BLOCKS]
    if not groups:
        return None
    paths, size = max(groups, key=lambda group: (len(group[0]) - 1) * group[1])
    cls = classes[paths[0]]
    return {
        "class": getattr(cls, "__qualname__", None) or str(cls),
        "module": getattr(cls, "__module__", None),
        "path": paths[0],
        "count": len(paths),
        "ops": size,
        "graph_ops": total,
    }
