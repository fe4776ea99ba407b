"""What every source is: hooks that are installed and removed together, a status with a reason, its own cost."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, TypeVar

from ...events import CacheLookup, Event, SourceStatus
from ...system import clock, own_errors
from ...system.interrupts import find_interrupt, pass_on
from ...system.own_errors import error_columns
from ..compile_context import EventSink, FunctionColumns, Made, OwnerColumns
from .patches import Args, Before, Kwargs, Observer, Patch, WhenImported
from .torch_names import HookPoint, NothingToWatch, TorchName, Unavailable, require

#: After so many errors of its own a source switches itself off.
MAX_ERRORS = 5
Method = TypeVar("Method", bound=Callable[..., Any])


class Hook(NamedTuple):
    """A function of torch, and the methods of a source that are called after and before its calls.

    `late`: it is watched once torch has imported its module. `optional`: the source works without it too. `full`: it is
    watched in `full` only.
    """

    point: HookPoint
    observe: Callable[..., None] | None
    before: Callable[..., Any] | None = None
    late: bool = False
    optional: bool = False
    full: bool = False


def hook(
    *points: HookPoint,
    before: Callable[..., Any] | None = None,
    late: bool = False,
    optional: bool = False,
    full: bool = False,
) -> Callable[[Method], Method]:
    """The method is called after each call of these functions: `method(args, kwargs, result, error)`; see `Hook`.

    `before` is an inherited method that is called before, as `before(args, kwargs)`; what it returns is the fifth
    argument. A method of the class itself has `hook_before` instead.
    """

    def mark(method: Method) -> Method:
        rows = [Hook(point, method, before, late, optional or not point.required, full) for point in points]
        vars(method)["hooks"] = [*vars(method).get("hooks", ()), *rows]
        return method

    return mark


def hook_before(*points: HookPoint, late: bool = False, optional: bool = False) -> Callable[[Method], Method]:
    """The method is called before each call of these functions, as `method(args, kwargs)`.

    If the source has a `hook` of the same function, that gets what it returns as the fifth argument, and says when.
    """

    def mark(method: Method) -> Method:
        vars(method)["hooks"] = [Hook(point, None, method, late, optional) for point in points]
        return method

    return mark


@functools.cache
def _list_declared(classes: tuple[type, ...]) -> tuple[Hook, ...]:
    """The hooks that methods of these classes declare, each with the method that is called before, if there is one."""
    methods = [method for base in classes for method in vars(base).values() if isinstance(method, FunctionType)]
    rows: list[Hook] = [each for method in methods for each in vars(method).get("hooks", ())]
    before = {each.point: each.before for each in rows if each.observe is None}
    after = [each._replace(before=before.get(each.point, each.before)) for each in rows if each.observe is not None]
    paired = {each.point for each in after}
    return (*after, *(each for each in rows if each.observe is None and each.point not in paired))


class Source:
    """One family of hooks. A subclass gives `name`, methods with `hook`, `needs` and, if it needs more, `open` and
    `close`.

    `needs` are the other names of torch without which it cannot work; those of `late_needs` are looked up with the late
    hooks of their module. `checks` raise Unavailable or NothingToWatch for what else is missing. `details` are the
    levels of detail at which it works; one that is `on_request` works only if it is requested.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[TorchName, ...]] = ()
    late_needs: ClassVar[tuple[TorchName, ...]] = ()
    checks: ClassVar[tuple[Callable[[], None], ...]] = ()
    details: ClassVar[tuple[str, ...]] = ("lean", "full")
    on_request: ClassVar[bool] = False

    def __init__(self, recorder: EventSink, detail: str):
        self.recorder = recorder
        self.context = recorder.context
        self.detail = detail
        self.per_thread = threading.local()
        self.events = 0
        self.dropped = 0
        self.errors = 0
        #: What `run_shielded` itself has raised. Hooks only append here, which works at the limit of recursion too.
        self.escaped: deque[BaseException] = deque(maxlen=MAX_ERRORS)
        self._last_error = ""
        self.overhead_ns = 0
        self._set_state("off", "not_started", None)
        self._patches: list[Patch] = []
        self._imports: WhenImported | None = None
        #: True from before `open` until `close` has worked.
        self.is_open = False

    @property
    def is_active(self) -> bool:
        return self._state == "active"

    @classmethod
    def probe(cls) -> None:
        """Unavailable with a reason if the installed torch lacks what this source needs; NothingToWatch if that is no
        loss, since what it watches cannot happen here.
        """
        require(cls.list_needs())
        for check in cls.checks:
            check()

    @classmethod
    def list_hooks(cls) -> list[Hook]:
        """The hooks of all methods. A subclass adds those whose point it has to choose."""
        return [*_list_declared(cls.__mro__)]

    @classmethod
    def list_needs(cls) -> list[TorchName]:
        """The names of torch without which the source cannot work."""
        return [*cls.needs, *(each.point for each in cls.list_hooks() if not (each.late or each.optional))]

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        """Hooks for modules that torch may import later: module -> a function that gives them once it is imported."""
        hooks = [each for each in self.list_hooks() if each.late]
        return {
            module: functools.partial(
                self._make_patches,
                [each for each in hooks if each.point.module == module],
                [name for name in self.late_needs if name.module == module],
            )
            for module in dict.fromkeys(each.point.module for each in hooks)
        }

    def _make_patches(self, hooks: list[Hook], needs: Iterable[TorchName] = ()) -> list[Patch]:
        """The patches of some hooks, not yet installed. Unavailable if torch lacks one of the functions or `needs`."""
        require(needs)
        return [
            self.watch(each.point, self._bind(each.observe), self._bind(each.before))
            for each in hooks
            if (self.detail == "full" or not each.full) and (not each.optional or each.point.exists())
        ]

    def _bind(self, method: Callable[..., Any] | None) -> Callable[..., Any] | None:
        return None if method is None else getattr(self, method.__name__)

    def open(self) -> None:
        """Install what is no patch."""

    def close(self) -> None:
        """Remove what `open` installed, also if an interrupt (Ctrl-C) ended `open` or an earlier `close` halfway."""

    def notice(self, error: BaseException) -> None:
        """An exception of the user's program is about to leave the watched code."""

    def watch(self, point: HookPoint, observe: Observer | None, before: Before | None = None) -> Patch:
        """A hook on a function of torch. Unavailable if that is missing, no function, or has other parameters."""
        point.require_value()
        handlers = self.escaped.append, self.handle_escaped
        return Patch(point.owner(), point.name, observe, self.run_shielded, *handlers, before)

    def begin(self, requested: bool = False) -> None:
        """Install everything; on failure nothing stays, and the status says why. Raises nothing of ours."""
        if self.on_request and not requested:
            self._set_state("off", "not_requested", "not requested")
            return
        if self.detail not in self.details:
            self._set_state("off", "detail_level", f"detail is {self.detail}")
            return
        try:
            self._install()
            self._set_state("active", None, None)
        except NothingToWatch as why:
            self.end()
            self._set_state("off", "nothing_to_watch", f"nothing to watch: {why}")
        except Unavailable as why:
            self.end()
            self._set_state("unavailable", "missing_api", str(why))
        except Exception as error:
            pass_on(error)
            self.end()
            self._set_state("unavailable", "errors", own_errors.describe_error(error))
            own_errors.report(self.name, error)

    def _set_state(self, state: str, code: str | None, reason: str | None) -> None:
        self._state, self._reason_code, self._reason = state, code, reason

    def _install(self) -> None:
        self.end()  # What an interrupt may have left.
        self.probe()
        self._patches = self._make_patches([each for each in self.list_hooks() if not each.late])
        for patch in self._patches:
            patch.install()
        waiting: dict[str, Callable[[], None]] = {}
        for module, patches in self.late_patches().items():
            if module in sys.modules:
                self._install_patches(patches)
            else:
                waiting[module] = functools.partial(self._module_imported, patches)
        if waiting:
            self._imports = WhenImported(waiting, self.escaped.append, self.handle_escaped)
            self._imports.install()
        self.is_open = True
        self.open()

    def _install_patches(self, patches: Callable[[], list[Patch]]) -> None:
        for patch in patches():
            self._patches.append(patch)
            patch.install()

    def _module_imported(self, patches: Callable[[], list[Patch]]) -> None:
        """torch has just imported a module that has late patches. Never raises."""
        if not self.is_active or self.recorder.is_ended:
            return
        try:
            self._install_patches(patches)
        except Unavailable as why:
            self._set_state("unavailable", "missing_api", str(why))
            self.end()
        except Exception as error:
            pass_on(error)
            self.note_error(error)

    def end(self) -> None:
        """Remove everything. A patch that another tool has wrapped since stays in its place, without effect.

        The status stays as it was: a session shows of each source whether it was active during the recording. Called
        again after an interrupt, it goes on where it was.
        """
        try:
            finders = [] if self._imports is None else [self._imports.remove]
            own_errors.run_each((*finders, *(patch.remove for patch in reversed(self._patches))))
        finally:
            try:
                if self.is_open:
                    self.close()
                self.is_open = False
            except Exception as error:
                pass_on(error)
                self.count_error(error)

    def note_time(self, args: Args, kwargs: Kwargs) -> int:
        """The time at which a call begins, for a hook's `before`."""
        return clock.now_ns()

    def emit(self, make: Callable[..., Made], *args: Any) -> None:
        """Hand `make(*args)`, which gives events, to the recorder. It runs in the writer's thread."""
        self.recorder.put(self, make, *args)

    def emit_event(self, event: Event) -> None:
        """Hand over an event that is complete."""
        self.recorder.put(self, lambda: event)

    def run_shielded(self, observe: Callable[..., Any], *args: Any) -> Any:
        """What one of our own hooks returns: its time is counted, and nothing that it raises leaves it, but None.

        A hook that could not be removed has no effect after the recording. Interrupts of the program leave it.
        """
        if self.recorder.is_ended:
            return None
        found, begin = None, time.perf_counter_ns()
        try:
            found = observe(*args)
        except Exception as error:
            try:
                pass_on(error)
                self.note_error(error)
            except (MemoryError, RecursionError) as worse:
                self.handle_escaped(worse)
        self.overhead_ns += time.perf_counter_ns() - begin
        return found

    def handle_escaped(self, error: BaseException) -> None:
        """Handle what has left `run_shielded`: raise an interrupt again, count anything else at the next status."""
        interrupt = find_interrupt(error)
        if interrupt is None:
            self.escaped.append(error)
        else:
            self.forget_calls()
            raise interrupt

    def forget_calls(self) -> None:
        """Forget the calls that this thread is in: an interrupt has ended a hook before it noted that one began or
        ended.
        """
        self.per_thread.__dict__.clear()

    def note_error(self, error: BaseException) -> None:
        """Count an error of ours; after too many this source switches itself off and says so."""
        self.count_error(error)
        if self.errors >= MAX_ERRORS and self.is_active:
            reason = f"switched off after {self.errors} errors, the last {self._last_error}"
            self._set_state("failed", "errors", reason)
            self.end()

    def count_error(self, error: BaseException) -> None:
        """Count an error of ours."""
        self.errors += 1
        self._last_error = own_errors.describe_error(error)
        own_errors.report(self.name, error)

    def status(self) -> SourceStatus:
        while self.escaped:
            self.note_error(self.escaped.popleft())
        code, reason = self._reason_code, self._reason
        if self.is_active and self.errors:
            code, reason = "errors", f"{self.errors} errors so far, the last {self._last_error}"
        return SourceStatus(
            time_ns=clock.now_ns(),
            name=self.name,
            status=self._state,
            reason=reason,
            reason_code=code,
            events=self.events,
            dropped=self.dropped,
            overhead_s=self.overhead_ns / 1e9,
        )


class CountingSource(Source):
    """A source whose hooks add up; the writer's thread asks for the sums before a batch, once they are due.

    `take_counts` gives what was counted since the last time, as the arguments of `emit`.
    """

    #: Seconds between two times.
    interval_s = 1.0
    _due = 0.0

    def open(self) -> None:
        self.recorder.counters.append(self)

    def close(self) -> None:
        self.recorder.release(self)

    def tick(self, final: bool = False) -> None:
        now = time.monotonic()
        if final or now >= self._due:
            self._due = now + self.interval_s
            for counts in self.take_counts():
                self.emit(*counts)

    def take_counts(self) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def reset_after_fork(self) -> None:
        """In a forked child: drop the counts so far, which the parent writes."""
        self.take_counts()


class Callback:
    """A method of a source that others call, not a `Patch`. It returns True, as a filter that keeps each log record."""

    def __init__(self, source: Source, observe: Callable[..., Any]):
        self._source, self._observe = source, observe

    def __call__(self, *args: Any) -> bool:
        try:
            self._source.run_shielded(self._observe, *args)
        except RecursionError as error:
            self._source.escaped.append(error)
        except BaseException as error:
            self._source.handle_escaped(error)
        return True


# Caches

#: Characters of an error that are kept in a row.
MAX_REASON = 2_000


class CacheSource(Source):
    """A source of the table `cache_lookups`."""

    def emit_lookup(
        self,
        cache: str | None,
        tier: str | None,
        action: str,
        outcome: str,
        error: BaseException | None = None,
        owner: OwnerColumns | FunctionColumns | None = None,
        **columns: Any,
    ) -> None:
        """Hand over a row, by default of now and of the compile that runs in this thread. `error`: why it failed."""
        row: dict[str, Any] = {"time_ns": clock.now_ns(), "cache": cache, "tier": tier}
        row |= {"action": action, "outcome": outcome}
        row |= self.context.current_columns() if owner is None else owner
        row |= columns | error_columns(error, MAX_REASON)
        self.emit(lambda: CacheLookup(**row))
