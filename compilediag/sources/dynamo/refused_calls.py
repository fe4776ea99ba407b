"""Calls that no compiled code fits and that torch did not compile: because of a stance, or of `aot_compile`.

While a stance is set that runs such calls eagerly, torch calls nothing at all for them: C++ compares the guards and
runs the function. So the guards are compared here once more, before each call, for as long as the stance is set.
Without such a stance, nothing of this is on the path of a compiled call.
"""

from __future__ import annotations

import dataclasses
import inspect
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...decode.guards.failed_guards import FailedEntry, make_recompile_events
from ...decode.guards.guard_text import split_comment
from ...decode.guards.path import format_expression
from ...errors import CompiledAfterWarmup
from ...events import GuardFailure, Recompile, RefusedCall
from ...formatting import format_first_line, format_function, format_line
from ...system import clock
from ..compile_context import EventSink, Made
from ..guards.guard_tree import failing_guards, first_failing_guard
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.source import CountingSource, hook
from ..hooks.torch_names import HookPoint, Unavailable, find_frame, is_torch_file
from . import torch_api
from .stack_frames import UserLine, add_call_stack, find_user_line, frames_outside
from .torch_api import AOT_COMPILE, CAPTURE, TRACED_FUNCTION, entry_number, is_dead, looked_up_entries

# How often calls were refused, by the function and the guards that failed: one row at first, then counts.

#: Different failures of one function that get rows of their own; further calls count towards its first one.
MAX_FAILURES = 32
#: Functions that get rows.
MAX_TALLIED = 1_000
#: Columns that a recompile has too.
_SHARED = (
    *("function", "file", "line", "guard_source", "guard_kind", "expected", "actual", "reason", "entries_checked"),
    *("closest_compile_id", "closest_compile_key", "user_file", "user_line", "user_code"),
)


class Refusal(NamedTuple):
    """What refused calls of one kind have in common; `first` are the guards that failed first in each entry."""

    refused_by: str
    ran: str
    code: types.CodeType | None
    set_at: UserLine
    first: tuple[str, ...] = ()

    @property
    def function(self) -> tuple[str, int]:
        """What bounds the number of rows: the function and what refused its calls."""
        return self.refused_by, id(self.code)


@dataclasses.dataclass
class Tally:
    """The calls of one kind: their compile key, their first row, and the calls that no row counts yet."""

    refusal: Refusal
    key: str
    #: The writer's thread adds the call stack.
    known: dict[str, Any] = dataclasses.field(default_factory=lambda: {"stack": None})
    row: RefusedCall | None = None
    pending: int = 0


class RefusalTallies:
    """All refused calls of a recording."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[Refusal, Tally] = {}
        self._first: dict[tuple[str, int], Refusal] = {}
        self._sizes: Counter[tuple[str, int]] = Counter()

    def add(self, refusal: Refusal, make_key: Callable[[], str]) -> Tally | None:
        """Count a call; its tally if it is the first of its kind, else None."""
        with self._lock:
            known = self._tallies.get(refusal)
            if known is None and self._is_full(refusal):
                known = self._tallies.get(self._first.get(refusal.function, refusal))
                if known is None:
                    return None
            if known is not None:
                known.pending += 1
                return None
            self._first.setdefault(refusal.function, refusal)
            self._sizes[refusal.function] += 1
            tally = self._tallies[refusal] = Tally(refusal, make_key())
            return tally

    def _is_full(self, refusal: Refusal) -> bool:
        is_known = refusal.function in self._sizes
        return self._sizes[refusal.function] >= MAX_FAILURES if is_known else len(self._sizes) >= MAX_TALLIED

    def take(self) -> list[tuple[Tally, int]]:
        """The calls that no row counts yet."""
        with self._lock:
            found = [(tally, tally.pending) for tally in self._tallies.values() if tally.pending]
            for tally, _ in found:
                tally.pending = 0
            return found


def make_first_rows(
    tally: Tally, time_ns: int, found: list[FailedEntry], is_torchs: Callable[[str], bool]
) -> Iterator[RefusedCall | GuardFailure]:
    """Yield the first row of a kind of calls, and one row per guard that failed."""
    refusal, code = tally.refusal, tally.refusal.code
    place = (None, None, None) if code is None else (code.co_name, code.co_filename, code.co_firstlineno)
    columns: dict[str, Any] = dict(zip(("function", "file", "line"), place, strict=True))
    closest = min(found, key=lambda entry: entry.distance, default=None)
    # The rows that a recompile would have.
    rows = () if closest is None else make_recompile_events(time_ns, None, place, found, closest, is_torchs, tally.key)
    for row in rows:
        if isinstance(row, Recompile):
            columns = {name: getattr(row, name) for name in _SHARED}
        else:
            yield row
    tally.row = RefusedCall(
        time_ns=time_ns,
        compile_key=tally.key,
        refused_by=refusal.refused_by,
        ran=refusal.ran,
        count=None if refusal.ran == "unchecked" else 1,
        set_file=refusal.set_at.file,
        set_line=refusal.set_at.line,
        stack=tally.known["stack"],
        **columns,
    )
    yield tally.row


def make_count(tally: Tally, count: int, time_ns: int) -> Made:
    """The row that counts further calls."""
    if tally.row is None or tally.row.count is None:
        return None
    return dataclasses.replace(tally.row, time_ns=time_ns, count=count)


# The function that a compiled call runs, and the variables that its guards see, before the call begins.

#: Frames between a hook and the wrapper of a compiled function.
CALL_DEPTH = 8


class CalledFunction(NamedTuple):
    """A function and its variables; `through` are the codes of torch between the compiled call and the function."""

    code: types.CodeType
    f_locals: dict[str, Any]
    through: tuple[types.CodeType, ...] = ()


def find_called_function() -> CalledFunction | None:
    """The Python function that the compiled call of this thread is about to run, with the variables with which it
    begins; None if it is no such function, or its arguments do not show them.

    A compiled module calls `forward` with the arguments of its call, unless it has hooks, which can change them.
    """
    frame = find_frame(CALL_DEPTH, torch_api.EVAL_FRAMES, "compile_wrapper")
    if frame is None:
        return None
    local = frame.f_locals
    args, kwargs = local.get("args", ()), local.get("kwargs", {})
    function: Any
    function, through = torch_api.find_forward(local.get("fn"))
    if isinstance(function, types.MethodType):
        function, args = function.__func__, (function.__self__, *args)
    if not isinstance(function, types.FunctionType):
        return None
    try:
        bound = inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
    except (TypeError, ValueError):  # A call that will raise.
        return None
    bound.apply_defaults()
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # Not assigned yet.
            continue
    return CalledFunction(function.__code__, {**bound.arguments, **found}, through)


#: What is watched while a stance is set.
_WATCHED: dict[str, HookPoint] = {
    "eager_on_recompile": torch_api.CALLBACK_OF_STANCE,
    "force_eager": torch_api.CALLBACK_OF_STANCE,
    "fail_on_recompile": torch_api.TENSOR_SEARCH,
    "eager_then_compile": torch_api.EXAMPLE_INPUTS,
    "aot_eager_then_compile": torch_api.EXAMPLE_INPUTS,
}
_RAN = {
    "fail_on_recompile": "raised",
    "aot_eager_then_compile": "aot_eager",
    "aot_compile": "raised",
    "end_warmup": "raised",
}
#: The longest text of a guard in a message.
MAX_GUARD = 200
#: Entries of one function that are compared; torch's own limit is 8.
MAX_ENTRIES = 64


class Comparison(NamedTuple):
    """The guards of a function's entries against a call: what failed first in each; None if one of them fits."""

    entries: list[Any]
    first: tuple[str, ...] | None


class Refusals(CountingSource):
    name = "refusals"
    needs = (
        *(torch_api.STANCE, torch_api.DISABLING_WRAPPER, *dict.fromkeys(_WATCHED.values())),
        *(AOT_COMPILE, CAPTURE, TRACED_FUNCTION),
    )

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._stance, self._set_at = "default", UserLine()
        self._of_stance: list[Patch] = []
        #: While the program wants to know by an exception: the hooks, and the line that asked for it.
        self._of_raising: list[Patch] = []
        self._asked_at = UserLine()
        #: What this thread raises, until it has left torch.
        self._raised = threading.local()
        self._tallies = RefusalTallies()

    def open(self) -> None:
        """Start, with the stance that was set before."""
        self._follow_stance(UserLine())
        super().open()

    def close(self) -> None:
        self._remove_from(self._of_stance)
        self.stop_raising()
        super().close()

    # The stance

    @hook(torch_api.SET_STANCE)
    def _stance_set(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None and self.is_open:
            self._follow_stance(find_user_line())

    def _follow_stance(self, set_at: UserLine) -> None:
        self._remove_from(self._of_stance)
        stance = torch_api.STANCE.get_loaded()
        self._stance, self._set_at = stance.stance, set_at
        point = _WATCHED.get(self._stance)
        if point is not None:
            observers = {
                torch_api.CALLBACK_OF_STANCE: self._call_begins,
                torch_api.TENSOR_SEARCH: self._tensors_found,
                torch_api.EXAMPLE_INPUTS: self._inputs_noted,
            }
            self._install_into(self._of_stance, self.watch(point, observers[point]))
        if stance.skip_guard_eval_unsafe:
            refusal = Refusal("skip_guard_eval_unsafe", "unchecked", None, set_at)
            tally = self._tallies.add(refusal, self.context.keys.make_key)
            if tally is not None:  # Its calls are not counted: nothing of ours is on their path.
                self.emit(make_first_rows, tally, clock.now_ns(), [], is_torch_file)

    def _install_into(self, patches: list[Patch], patch: Patch) -> None:
        patches.append(patch)
        self._patches.append(patch)  # With the others, so that whatever ends the watch removes it.
        patch.install()

    def _remove_from(self, patches: list[Patch]) -> None:
        for patch in reversed(patches[:]):
            patch.remove()
            if patch in self._patches:
                self._patches.remove(patch)
            patches.remove(patch)

    # After the warm-up

    def begin_raising(self, asked_at: tuple[str | None, int | None]) -> str | None:
        """Raise in the caller before anything compiles. Why that is not possible; None if it is."""
        if not self.is_active:
            return str(self.status().reason)
        if not self._of_raising:
            try:
                patches = [
                    self.watch(torch_api.CONVERSION, self._converted, self._conversion_begins),
                    self.watch(torch_api.TENSOR_SEARCH, self._compile_begins),
                ]
            except Unavailable as why:
                return str(why)
            self._asked_at = UserLine(*asked_at)
            for patch in patches:
                self._install_into(self._of_raising, patch)
        return None

    def stop_raising(self) -> None:
        """Let torch compile again."""
        self._remove_from(self._of_raising)

    def _compile_begins(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch has found tensors in a frame that no entry fits, and would compile it now. So far it has changed
        nothing but counters: no compile id was given, no entry made, no guard or config touched.
        """
        if not result or not torch_api.is_about_to_compile():
            return
        frame = args[0]
        entries = looked_up_entries(frame.f_code)[:MAX_ENTRIES]
        first = [first_failing_guard(entry.guard_manager, frame.f_locals) for entry in entries]
        texts = tuple(f"{failure.guard} {failure.actual}" if failure else "" for failure in first)
        self._note(frame.f_code, Comparison(entries, texts), (), frame.f_locals, "end_warmup")
        raised = CompiledAfterWarmup(self._explain(frame.f_code, self._list_failures(entries, frame.f_locals)))
        self._raised.error = raised
        raise raised

    def _conversion_begins(self, args: Args, kwargs: Kwargs) -> None:
        self._raised.error = None

    def _converted(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        """torch returns to the caller. With `suppress_errors`, it has kept what was raised for itself."""
        raised, self._raised.error = getattr(self._raised, "error", None), None
        if raised is not None and error is None:
            raise raised.with_traceback(None)

    def _explain(self, code: types.CodeType, found: list[FailedEntry]) -> str:
        step = self.recorder.find_step(clock.now_ns())
        when = "" if step is None else f", at step {step}"
        function = format_function(code.co_name, code.co_filename, code.co_firstlineno)
        closest = min(found, key=lambda entry: entry.distance, default=None)
        why = "it was not compiled before"
        if closest is not None and closest.guards:
            guard = closest.guards[0]
            source = format_expression(guard.source) if guard.source else "a guard failed"
            values = f" was {guard.expected}, now {guard.actual}" if guard.actual is not None else ""
            text, _ = split_comment(guard.guard or guard.kind)
            why = f"{source}{values} (guard: {format_first_line(text, MAX_GUARD)})"
        return format_line(f"{function} has to be compiled after the warm-up{when}: {why}", 1_000)

    # Calls

    def _call_begins(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A compiled call begins under a stance that never compiles."""
        if not callable(args[0]):
            return  # A function that is not to be compiled.
        called = find_called_function()
        if called is None:
            return
        if self._stance == "force_eager":
            self._note(called.code, None, called.through)
        elif (compared := _compare(called.code, called.f_locals)) is not None:
            self._note(called.code, compared, called.through, called.f_locals)

    def _tensors_found(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch has found tensors in a function that no entry fits, and raises."""
        if result and torch_api.is_refusing():
            frame = args[0]
            compared = _compare(frame.f_code, frame.f_locals)
            if compared is not None:
                self._note(frame.f_code, compared, (), frame.f_locals)

    def _inputs_noted(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The first call of a function is not compiled with its own backend."""
        code = args[0].f_code
        if result is not None and len(result) == 1 and not is_torch_file(code.co_filename):
            self._note(code, None)

    @hook(torch_api.GUARDS_COMPARED)
    def _guards_compared(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch asks which guard failed: code that was compiled ahead of time then raises. At a recompile it asks for
        each entry of the function, so that these calls end here.
        """
        if result is None or args[0].cache_entry is not None:
            return
        code = None if result.result else torch_api.refused_ahead()
        if code is not None:
            entry = torch_api.AheadEntry(args[0])
            compared = Comparison([entry], (str(list(result.verbose_code_parts)[:1]),))
            self._note(code, compared, (), args[1], "aot_compile")

    def _note(
        self,
        code: types.CodeType,
        compared: Comparison | None,
        through: Sequence[types.CodeType] = (),
        f_locals: dict[str, Any] | None = None,
        refused_by: str | None = None,
    ) -> None:
        """Count a call; the first one with these failing guards is a row at once, with all that failed."""
        by = refused_by or self._stance
        ran = _RAN.get(by, "eager")
        set_at = {"aot_compile": UserLine(), "end_warmup": self._asked_at}.get(by, self._set_at)
        refusal = Refusal(by, ran, code, set_at, compared.first if compared and compared.first else ())
        tally = self._tallies.add(refusal, self.context.keys.make_key)
        if tally is None:
            return
        found = [] if compared is None or f_locals is None else self._list_failures(compared.entries, f_locals)
        is_plain = by == "aot_compile" and code.co_varnames[:1] != ("self",)
        # What `aot_compile` calls with the same arguments is left out; the frames of torch through which the function
        # would have been called are added.
        codes, offsets = frames_outside(None, AOT_COMPILE.module if is_plain else None)
        around = [*codes, *through], [*offsets, *(-1 for _ in through)]
        self.emit(add_call_stack, self.context.stacks, tally.known, code, around, clock.now_ns())
        self.emit(make_first_rows, tally, clock.now_ns(), found, is_torch_file)

    def _list_failures(self, entries: Sequence[Any], f_locals: dict[str, Any]) -> list[FailedEntry]:
        keys = self.context.keys
        found = []
        for entry in entries:
            compile_id = getattr(entry, "compile_id", None)
            age = (not is_dead(entry), 0 if compile_id is None else entry_number(entry))
            guards = list(failing_guards(entry.guard_manager, f_locals))
            text, reason = "" if compile_id is None else str(compile_id), guards[0].guard if guards else None
            found.append(FailedEntry(text, age, guards, reason, keys.find(compile_id)))
        return found

    # What was counted

    def take_counts(self) -> list[tuple[Any, ...]]:
        return [(make_count, tally, count, clock.now_ns()) for tally, count in self._tallies.take()]


def _compare(code: types.CodeType, f_locals: dict[str, Any]) -> Comparison | None:
    """What fails first in each entry; None if one fits, or if torch has nothing to compile in this function."""
    entries = looked_up_entries(code)[:MAX_ENTRIES]
    if not entries:
        return None if code in torch_api.COMPILED_CODES.find() else Comparison([], ())
    first: list[str] = []
    for entry in entries:
        failure = first_failing_guard(entry.guard_manager, f_locals)
        if failure is None:
            return None
        first.append(f"{failure.guard} {failure.actual}")
    return Comparison(entries, tuple(first))
