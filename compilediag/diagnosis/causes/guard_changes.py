"""The guards that failed in the closest entry at a recompile, each with the value that it saw before and after."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from ...decode.guards.guard_text import find_torch_source
from ...decode.guards.path import Path, name_any_instance
from ...events import GuardFailure, Recompile
from ...formatting import format_first_line
from ..evidence import Evidence, Place
from .cause import INTEGER, get_family, get_kind

#: Guards on a whole object: what is inside of another object differs as a matter of course.
_WHOLE_OBJECT = ("type", "identity", "dead_reference", "tensor_rank")
#: Guards that change with another property of the same tensor.
_CONSEQUENCES = ("dispatch_keys", "alias", "other")
#: Sizes of one tensor whose products are tried.
_MAX_SIZES = 6


class CauseKey(NamedTuple):
    """What the recompiles of one cause have in common in one function.

    `text` is torch's reason of an unknown guard, `region` that of `torch.compile(isolate_recompiles=True)`, which has
    entries of its own.
    """

    file: str | None
    line: int | None
    function: str | None
    family: str
    text: str
    source: str
    region: int | None = None

    @property
    def path(self) -> Path:
        return Path.of(self.source)

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


def list_failures(evidence: Evidence, row: Recompile) -> list[GuardFailure]:
    """The guards of every earlier entry that failed at a recompile. One without a compile key has none."""
    if row.compile_key is None:
        return []
    return [failure for failure in evidence.by_compile(GuardFailure).get(row.compile_key, ()) if failure.guard_source]


def list_closest_failures(evidence: Evidence, row: Recompile) -> list[GuardFailure]:
    """The guards that failed in the entry that came closest to fitting."""
    if row.closest_compile_key is None:
        return []
    return [failure for failure in list_failures(evidence, row) if failure.entry_compile_key == row.closest_compile_key]


def make_cause_key(row: Recompile) -> CauseKey:
    """The key of the cause that a recompile belongs to."""
    kind, source = get_kind(row.guard_kind), name_any_instance(row.guard_source or "")
    text = format_first_line(row.reason or "") if kind == "other" and not source else ""
    return CauseKey(row.file, row.line, row.function, get_family(kind, source), text, source, row.region)


def list_guard_changes(evidence: Evidence, row: Recompile) -> list[GuardChange]:
    """The guards that failed at a recompile, the first one first, without those that follow from another one."""
    first = GuardChange(make_cause_key(row), _use_own_reason(evidence, row), True)
    found = {first.key: first}
    for change in _list_others(evidence, row):
        found.setdefault(change.key, change)
    changes = list(found.values())
    return _keep_one_stride([one for one in changes if one.is_first or not _follows_any(one, changes)])


def _keep_one_stride(changes: list[GuardChange]) -> list[GuardChange]:
    """The changes with one stride of each tensor: another memory layout changes most of them."""
    first: dict[Path, GuardChange] = {}
    for change in changes:
        if change.key.family == "tensor_stride":
            first.setdefault(change.key.path.subject, change)
    return [one for one in changes if one.key.family != "tensor_stride" or one in first.values()]


def _list_others(evidence: Evidence, row: Recompile) -> Iterator[GuardChange]:
    for failure in list_closest_failures(evidence, row):
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


def _use_own_reason(evidence: Evidence, row: Recompile) -> Recompile:
    """Give a recompile the text of its own guard, where torch's reason is of another guard that failed before it."""
    if not row.guard_source or find_torch_source(row.guard_source, row.reason) is not None:
        return row
    own = (
        failure.guard for failure in list_closest_failures(evidence, row) if failure.guard_source == row.guard_source
    )
    return replace(row, reason=next(own, None) or row.reason)


def _follows_any(change: GuardChange, changes: Sequence[GuardChange]) -> bool:
    if change.key.family == "tensor_stride" and _follows_sizes(change, changes):
        return True
    return any(_follows(change, other) for other in changes if other is not change)


def _follows_sizes(change: GuardChange, changes: Sequence[GuardChange]) -> bool:
    """True for a stride that changed as sizes of its tensor did: that of a dense tensor is a product of them."""
    subject, own = change.key.path.subject, _get_ratio(change)
    sizes = {other.key.path: _get_ratio(other) for other in changes if other.is_size}
    ratios = [ratio for path, ratio in sizes.items() if ratio is not None and path.owner == subject]
    if own is None:
        return bool(sizes)
    subsets = (subset for count in range(1, len(ratios) + 1) for subset in combinations(ratios[:_MAX_SIZES], count))
    return any(math.prod(subset) == own for subset in subsets)


def _get_ratio(change: GuardChange) -> Fraction | None:
    """How many times as large it is; None if it is not a number, or was 0."""
    pair = change.row.expected or "", change.row.actual or ""
    if not all(map(INTEGER.fullmatch, pair)) or int(pair[0]) == 0:
        return None
    return Fraction(int(pair[1]), int(pair[0]))


def _follows(change: GuardChange, other: GuardChange) -> bool:
    """True if a guard had to fail because the other one did: it needs no change of its own."""
    if change.is_relation:
        return other.is_size or (other.is_relation and other.is_first)
    if change.key.family in _CONSEQUENCES:
        return not (other.key.family in _CONSEQUENCES and other.is_first < change.is_first)
    if other.key.family in _WHOLE_OBJECT or other.row.expected == "None" or other.row.actual == "None":
        return other.key.path.subject.holds(change.key.path.subject)
    return change.key.family == "mode_stack" and other.key.family == "default_device"


def is_local_number(path: Path) -> bool:
    """True for a plain local variable, which can hold a size that was computed before a graph break."""
    return path.is_size or (not path.steps and path.root.isidentifier())
