"""The guards that failed in the closest entry at a recompile, each with the value that it saw before and after."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...events import GuardFailure, Recompile
from ...formatting import format_first_line
from ..evidence import Place
from .cause import INTEGER, get_family, get_kind
from .source_paths import find_torch_source, is_size, normalize_source, split_property

#: Guards on a whole object: what is inside of another object differs as a matter of course.
_WHOLE_OBJECT = ("type", "identity", "dead_reference", "length", "dict_keys", "hasattr", "alias")
#: Guards that change with another property of the same tensor.
_CONSEQUENCES = ("tensor_stride", "dispatch_keys", "alias", "other")


class CauseKey(NamedTuple):
    """What the recompiles of one cause have in common in one function. `text` is torch's reason of an unknown guard."""

    file: str | None
    line: int | None
    function: str | None
    family: str
    text: str
    source: str

    @property
    def place(self) -> Place:
        return self.function, self.file, self.line


@dataclass(frozen=True)
class GuardChange:
    """One guard that failed at one recompile.

    `row` is the recompile as if this guard had been the first to fail. `numbers` are the size or integer that the entry
    needs and the one that came; None for anything else.
    """

    key: CauseKey
    row: Recompile
    is_first: bool

    @property
    def event_id(self) -> int | None:
        return self.row.event_id

    @property
    def numbers(self) -> tuple[int, int] | None:
        pair = self.row.expected or "", self.row.actual or ""
        if self.key.family not in ("tensor_size", "value") or not all(map(INTEGER.fullmatch, pair)):
            return None
        return int(pair[0]), int(pair[1])

    @property
    def is_size(self) -> bool:
        return self.key.family == "tensor_size"

    @property
    def is_relation(self) -> bool:
        """True for a guard on how several sizes relate."""
        return self.key.family == "symbolic_shape"


class FailureIndex:
    """The failed guards of each recompile, by its compile key. A recompile without a key has none."""

    def __init__(self, failures: Iterable[GuardFailure]):
        self._by_compile: dict[str, list[GuardFailure]] = defaultdict(list)
        for failure in failures:
            if failure.guard_source and failure.compile_key is not None:
                self._by_compile[failure.compile_key].append(failure)

    def of(self, row: Recompile) -> Sequence[GuardFailure]:
        """The guards of every earlier entry that failed at a recompile."""
        return () if row.compile_key is None else self._by_compile.get(row.compile_key, ())

    def of_closest(self, row: Recompile) -> list[GuardFailure]:
        """The guards that failed in the entry that came closest to fitting."""
        if row.closest_compile_key is None:
            return []
        return [failure for failure in self.of(row) if failure.entry_compile_key == row.closest_compile_key]


def make_cause_key(row: Recompile) -> CauseKey:
    """The key of the cause that a recompile belongs to."""
    kind, source = get_kind(row.guard_kind), normalize_source(row.guard_source or "")
    text = format_first_line(row.reason or "") if kind == "other" and not source else ""
    return CauseKey(row.file, row.line, row.function, get_family(kind, source), text, source)


def list_guard_changes(row: Recompile, failures: FailureIndex) -> list[GuardChange]:
    """The guards that failed at a recompile, the first one first, without those that follow from another one."""
    first = GuardChange(make_cause_key(row), _use_own_reason(row, failures), True)
    found = {first.key: first}
    for change in _list_others(row, failures):
        found.setdefault(change.key, change)
    changes = list(found.values())
    return [c for c in changes if c.is_first or not any(_follows(c, other) for other in changes if other is not c)]


def _list_others(row: Recompile, failures: FailureIndex) -> Iterator[GuardChange]:
    for failure in failures.of_closest(row):
        view = replace(
            row,
            guard_source=failure.guard_source,
            guard_kind=failure.guard_kind,
            expected=failure.expected,
            actual=failure.actual,
            reason=failure.guard,
            user_file=failure.user_file,
            user_line=failure.user_line,
            user_code=None,
        )
        yield GuardChange(make_cause_key(view), view, False)


def _use_own_reason(row: Recompile, failures: FailureIndex) -> Recompile:
    """Give a recompile the text of its own guard, where torch's reason is of another guard that failed before it."""
    if not row.guard_source or find_torch_source(row.guard_source, row.reason) is not None:
        return row
    own = (failure.guard for failure in failures.of_closest(row) if failure.guard_source == row.guard_source)
    return replace(row, reason=next(own, None) or row.reason)


def _follows(change: GuardChange, other: GuardChange) -> bool:
    """True if a guard had to fail because the other one did: it needs no change of its own."""
    own, base = (_find_base(one.key.source) for one in (change, other))
    if change.is_relation:
        return other.is_size
    if change.key.family in _CONSEQUENCES:
        return not (other.key.family in _CONSEQUENCES and other.is_first < change.is_first)
    if other.key.family in _WHOLE_OBJECT or other.row.expected == "None" or other.row.actual == "None":
        return own == base or own.startswith((f"{base}.", f"{base}["))
    if change.key.family == "mode_stack":
        return other.key.family == "default_device"
    return own == base and bool(own) and other.is_first and not (change.is_size and other.is_size)


def _find_base(source: str) -> str:
    """The object that a source is about: of `len(x)` and of `x.size()[0]` it is x."""
    base = split_property(source)[0]
    return base.removeprefix("len(").removesuffix(")") if base.startswith("len(") else base


def is_local_number(source: str) -> bool:
    """True for a plain local variable, which can hold a size that was computed before a graph break."""
    return source.isidentifier() or is_size(source)
