"""Find the root causes of recompiles: group them by function and guarded value, then join what changed alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...decode.guards.source_names import format_source
from ...events import DynamicDecision, GuardFailure, Recompile, Rows
from ...formatting import format_first_line
from ..evidence import Place, group_by
from .cause import EVALUATED, INTEGER, NUMBER, ZERO_ONE, Cause, get_family, get_kind, list_unique
from .shape_evidence import FactIndex, merge_facts
from .source_paths import find_torch_source, normalize_source

#: Modes of the whole program: where they recompile is no part of the cause.
_MODES = ("global_state", "default_device", "mode_stack")
#: Guards on the object itself: that two objects look the same does not make them one cause.
_OBJECTS = ("identity", "dead_reference", "backend", "type", "alias", "other")
_SIZES = ("tensor_size", "symbolic_shape")


class CauseKey(NamedTuple):
    """What the recompiles of one cause have in common in one function. `text` is torch's reason of an unknown guard."""

    file: str | None
    line: int | None
    function: str | None
    family: str
    text: str
    source: str


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


def find_causes(data: Rows) -> list[Cause]:
    """Find the root causes of all recompiles, in order of first appearance."""
    failures, decided = FailureIndex(data.rows(GuardFailure)), _find_dynamic_sizes(data)
    facts = FactIndex(data)
    recompiles = [_use_own_reason(row, failures) for row in data.rows(Recompile)]
    groups = group_by(sorted(recompiles, key=_get_moment), make_cause_key)
    shared = _find_shared(groups, failures)
    causes = [_make_cause(key.source, rows, shared.get(key, []), failures, decided) for key, rows in groups.items()]
    return _join_alike([replace(cause, facts=facts.find(cause.recompiles, cause.source)) for cause in causes])


def count_strikes(data: Rows, kind: str | None, source: str | None, places: Iterable[Place]) -> int:
    """Count the recompiles of these functions that a guard of this kind on this value caused."""
    if kind is None or source is None:
        return 0
    family = get_family(kind, source)
    wanted = {(file, line, function, family, source) for function, file, line in places}
    keys = map(make_cause_key, data.rows(Recompile))
    return sum((key.file, key.line, key.function, key.family, key.source) in wanted for key in keys)


def make_cause_key(row: Recompile) -> CauseKey:
    """The key of the cause that a recompile belongs to."""
    kind, source = get_kind(row.guard_kind), normalize_source(row.guard_source or "")
    text = format_first_line(row.reason or "") if kind == "other" and not source else ""
    return CauseKey(row.file, row.line, row.function, get_family(kind, source), text, source)


def _get_moment(row: Recompile) -> tuple[int, int]:
    return row.time_ns, row.event_id or 0


def _get_guarded(failure: GuardFailure) -> tuple[str, str]:
    """Kind and source of a guard that failed."""
    return get_kind(failure.guard_kind), normalize_source(failure.guard_source or "")


def _use_own_reason(row: Recompile, failures: FailureIndex) -> Recompile:
    """Give a recompile the text of its own guard, where torch's reason is of another guard that failed before it."""
    if not row.guard_source or find_torch_source(row.guard_source, row.reason) is not None:
        return row
    own = (failure.guard for failure in failures.of_closest(row) if failure.guard_source == row.guard_source)
    return replace(row, reason=next(own, None) or row.reason)


def _find_shared(groups: dict[CauseKey, list[Recompile]], failures: FailureIndex) -> dict[CauseKey, list[Recompile]]:
    """Map each cause to the recompiles of other causes at which its guard failed too, in the closest entry."""
    shared: dict[CauseKey, dict[int | None, Recompile]] = defaultdict(dict)
    for own, rows in groups.items():
        for row in rows:
            for kind, source in map(_get_guarded, failures.of_closest(row)):
                other = own._replace(family=get_family(kind, source), text="", source=source)
                if source != own.source and other in groups:
                    shared[other][row.event_id] = row
    return {key: list(rows.values()) for key, rows in shared.items()}


def _make_cause(
    source: str,
    rows: list[Recompile],
    shared: list[Recompile],
    failures: FailureIndex,
    decided: set[tuple[str, str]],
) -> Cause:
    also = _find_also_failed(rows, source, failures)
    beside = [failure for row in rows for failure in failures.of(row)]
    return Cause(
        recompiles=tuple(rows),
        source=source,
        also=also,
        is_still_static=any(_was_made_dynamic(row, decided) for row in rows)
        or any(_is_specialized(failure, source) for failure in beside),
        shared=tuple(shared),
        also_named=_find_also_names(also, beside),
    )


def _find_also_failed(rows: list[Recompile], source: str, failures: FailureIndex) -> tuple[tuple[str, str], ...]:
    """The guards that failed in the same entry at the same recompile, in at least half of the cases."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        guards = {_get_guarded(failure) for failure in failures.of_closest(row)}
        counts.update(sorted(guard for guard in guards if guard[1] != source))
    return tuple(guard for guard, count in counts.most_common(8) if 2 * count >= len(rows))


def _find_also_names(also: tuple[tuple[str, str], ...], failures: list[GuardFailure]) -> tuple[str, ...]:
    """torch's names of the sizes and numbers in `also` that a setting can make dynamic."""
    varying = (failure for failure in failures if _get_guarded(failure) in also and _can_be_dynamic(failure))
    pairs = list_unique((failure.guard_source or "", failure.guard) for failure in varying)
    return list_unique(name for pair in pairs if (name := find_torch_source(*pair)) is not None)


def _can_be_dynamic(failure: GuardFailure) -> bool:
    """True for a size, and for an integer that was another integer."""
    numbers = (failure.expected or "", failure.actual or "")
    return failure.guard_kind in _SIZES or (failure.guard_kind == "value" and all(map(INTEGER.fullmatch, numbers)))


def _is_specialized(failure: GuardFailure, source: str) -> bool:
    """True if an entry was bound to one value of this source because Python code needed it."""
    needs_number = EVALUATED in (failure.guard or "") and NUMBER.fullmatch(failure.expected or "")
    return bool(needs_number) and normalize_source(failure.guard_source or "") == source


def _find_dynamic_sizes(data: Rows) -> set[tuple[str, str]]:
    """The sizes that torch made dynamic by itself: (compile key of the entry, source)."""
    return {
        (row.compile_key, f"{format_source(row.source)}.size()[{row.dim}]")
        for row in data.rows(DynamicDecision)
        if row.compile_key is not None and row.source and (row.dim or "").isdecimal()
    }


def _was_made_dynamic(row: Recompile, decided: set[tuple[str, str]]) -> bool:
    """True if the closest entry needs one size although torch had made that size dynamic for it."""
    entry = (row.closest_compile_key or "", row.guard_source or "")
    return row.guard_kind == "tensor_size" and row.expected not in ZERO_ONE and entry in decided


def _join_alike(causes: list[Cause]) -> list[Cause]:
    """Join the causes of several functions that are one change: a batch size, a mode, a flag, a global."""
    groups = group_by(causes, _make_change_key)
    return [alike[0] if len(alike) == 1 else _join(alike) for alike in groups.values()]


def _make_change_key(cause: Cause) -> tuple[object, ...]:
    """What is the same for causes that are one: the guarded value, and the values that came, in their order."""
    if cause.family in _MODES:
        return cause.family, cause.source, cause.values
    if cause.family in _OBJECTS or not cause.values:
        return (id(cause),)
    return cause.family, cause.source, cause.values, cause.bounds, cause.is_still_static


def _join(causes: list[Cause]) -> Cause:
    rows = sorted((row for cause in causes for row in cause.recompiles), key=_get_moment)
    own = {row.event_id for row in rows}
    shared = {row.event_id: row for cause in causes for row in cause.shared if row.event_id not in own}
    return Cause(
        recompiles=tuple(rows),
        source=causes[0].source,
        also=list_unique(guard for cause in causes for guard in cause.also),
        is_still_static=causes[0].is_still_static,
        shared=tuple(shared.values()),
        also_named=list_unique(name for cause in causes for name in cause.also_named),
        facts=merge_facts([cause.facts for cause in causes]),
    )
