"""Find the root causes of recompiles: what changed in the user's program, in whatever frames torch saw it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from ...decode.guards.path import format_source
from ...events import (
    Compile,
    DynamicDecision,
    Event,
    GraphBreak,
    GuardFailure,
    Recompile,
    RefusedCall,
    Rows,
    StackFrame,
    SymbolicShape,
)
from ..evidence import get_place, group_by
from .call_instances import CallInstances
from .cause import (
    EVALUATED,
    INTEGER,
    MODES,
    NUMBER,
    ZERO_ONE,
    Cause,
    Members,
    get_kind,
    get_moment,
    list_unique,
)
from .data_flow import group_by_flow
from .guard_changes import CauseKey, FailureIndex, GuardChange, list_guard_changes
from .needed_versions import leave_needed
from .root_changes import RootChanges
from .shape_evidence import FactIndex, ValueFacts, merge_facts
from .source_paths import find_torch_source, normalize_source
from .tied_sizes import drop_tied_needs
from .user_names import NameIndex, SizeAt, merge_names

#: Guards on the object itself: that two objects look the same does not make them one cause.
_OBJECTS = ("identity", "dead_reference", "backend", "type", "alias", "other")
_SIZES = ("tensor_size", "symbolic_shape")


#: The rows that causes are found from.
_READ: tuple[type[Event], ...] = (
    *(Recompile, GuardFailure, Compile, DynamicDecision),
    *(StackFrame, SymbolicShape, GraphBreak, RefusedCall),
)
#: How many rows of one kind there are, and the first and the last of them: another one if rows were read again.
_State = tuple[tuple[int, Event | None, Event | None], ...]
#: The causes of the latest state of each session: its plan, its findings and its pages need the same ones.
_kept: WeakKeyDictionary[Rows, tuple[_State, list[Cause]]] = WeakKeyDictionary()


def find_causes(data: Rows) -> list[Cause]:
    """Find the root causes of all recompiles, in order of first appearance. They are found once for the same rows."""
    state = tuple(_describe_state(data.rows(kind)) for kind in _READ)
    known = _kept.get(data)
    if known is None or not all(map(_is_same, known[0], state)):
        known = _kept[data] = state, _find_causes(data)
    return known[1][:]


def _describe_state(rows: Sequence[Event]) -> tuple[int, Event | None, Event | None]:
    return (len(rows), rows[0], rows[-1]) if rows else (0, None, None)


def _is_same(one: tuple[int, Event | None, Event | None], other: tuple[int, Event | None, Event | None]) -> bool:
    return one[0] == other[0] and one[1] is other[1] and one[2] is other[2]


def _find_causes(data: Rows) -> list[Cause]:
    failures, decided = FailureIndex(data.rows(GuardFailure)), _find_dynamic_sizes(data)
    names, facts = NameIndex(data), FactIndex(data)
    groups = _group_changes(data, failures, names)
    causes = [_make_cause(group, failures, decided, names) for group in groups]
    known = [drop_tied_needs(replace(cause, facts=_find_facts(cause, facts))) for cause in causes]
    return leave_needed(_join_alike(known))


def _find_facts(cause: Cause, facts: FactIndex) -> ValueFacts:
    beside = [source for kind, source in cause.also if kind in _SIZES]
    return facts.find(cause.seen or cause.recompiles, cause.source, beside)


@dataclass
class _Group:
    """The changes of one root, by the number of their recompile. `seen` have the values of the root itself.

    `members` are all of them by their source and torch's text: also several at one recompile.
    """

    key: CauseKey
    seen: dict[int | None, GuardChange] = field(default_factory=dict)
    derived: dict[int | None, GuardChange] = field(default_factory=dict)
    attributed: set[int | None] = field(default_factory=set)
    members: dict[tuple[str, str | None], GuardChange] = field(default_factory=dict)

    def list_rows(self, is_own: bool, is_derived: bool) -> tuple[Recompile, ...]:
        """The recompiles that are attributed to the root, or those that are not; of its own values, or of derived."""
        changes = self.derived if is_derived else self.seen
        return tuple(change.row for number, change in changes.items() if (number in self.attributed) == is_own)


def _group_changes(data: Rows, failures: FailureIndex, names: NameIndex) -> list[_Group]:
    """The changes of all recompiles by their roots, in order of first appearance."""
    recompiles = [list_guard_changes(row, failures) for row in sorted(data.rows(Recompile), key=get_moment)]
    instances, roots = CallInstances(data), RootChanges(names.find_key, names.find_position)
    before: dict[int | None, int | None] = {}
    for changes in recompiles:
        earlier = instances.add(changes)
        roots.add(changes, earlier)
        before[changes[0].event_id] = earlier[-1].event_id if earlier else None
    roots.join_peers()
    groups: dict[CauseKey, _Group] = {}
    attributed: dict[int | None, CauseKey] = {}
    for changes in recompiles:
        for change in changes:
            _add_change(groups, change, roots)
        found, number = roots.find_roots(changes[0]), changes[0].event_id
        # Of the sizes that a product has, the one that recompiled the frames before in the same call.
        attributed[number] = next((root for root in found if root == attributed.get(before[number])), found[0])
        groups[attributed[number]].attributed.add(number)
    return list(groups.values())


def _add_change(groups: dict[CauseKey, _Group], change: GuardChange, roots: RootChanges) -> None:
    """Add a change to its roots."""
    is_equal, number = roots.is_equal(change), change.event_id
    for root in roots.find_roots(change):
        group = groups.setdefault(root, _Group(root))
        group.members.setdefault((change.row.guard_source or "", change.row.reason), change)
        if is_equal and (change.key == root or number not in group.seen):
            group.seen[number] = change
            group.derived.pop(number, None)
        elif number not in group.seen:
            group.derived.setdefault(number, change)


def _make_cause(group: _Group, failures: FailureIndex, decided: set[tuple[str, str]], names: NameIndex) -> Cause:
    source = group.key.source
    own, seen = group.list_rows(True, False), tuple(change.row for change in group.seen.values())
    derived, is_first = group.list_rows(True, True), bool(group.attributed)
    rows = own or seen
    also, members = _find_also_failed(rows, source, failures), _find_members(group)
    beside = [failure for row in rows for failure in failures.of(row)]
    others = () if not is_first else (*group.list_rows(False, False), *group.list_rows(False, True))
    return Cause(
        recompiles=rows,
        source=source,
        also=also,
        is_still_static=any(_was_made_dynamic(row, decided) for row in rows)
        or any(_is_specialized(failure, source) for failure in beside),
        shared=tuple(sorted(others, key=get_moment)),
        also_named=list_unique((*_find_also_names(also, beside), *members.named)),
        members=members,
        user=names.find(
            seen, [change.row for change in group.members.values()], _list_sizes(rows, group, also, failures)
        ),
        derived=derived if is_first else group.list_rows(False, True),
        seen=seen,
        is_first=is_first,
    )


def _get_guarded(failure: GuardFailure) -> tuple[str, str]:
    """Kind and source of a guard that failed."""
    return get_kind(failure.guard_kind), normalize_source(failure.guard_source or "")


def _find_also_failed(rows: Sequence[Recompile], source: str, failures: FailureIndex) -> tuple[tuple[str, str], ...]:
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


def _find_members(group: _Group) -> Members:
    """The other sizes and numbers that are the same change: those of the same call, and torch's names of all."""
    others = [change for change in group.members.values() if change.numbers is not None and change.key != group.key]
    beside = (change for change in others if change.key.place == group.key.place)
    named = (find_torch_source(change.row.guard_source or "", change.row.reason) for change in others)
    return Members(
        list_unique((get_kind(change.row.guard_kind), change.key.source) for change in beside),
        list_unique(name for name in named if name is not None),
    )


def _list_sizes(
    rows: Sequence[Recompile], group: _Group, also: Sequence[tuple[str, str]], failures: FailureIndex
) -> Iterator[SizeAt]:
    """The sizes that changed with a cause, each with its function."""
    changes = (change for change in group.members.values() if change.numbers is not None and change.is_size)
    yield from ((change.key.place, change.key.source) for change in changes)
    for row in rows:
        guards = map(_get_guarded, failures.of_closest(row))
        yield from ((get_place(row), guard[1]) for guard in guards if guard in also and guard[0] in _SIZES)


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
    alike = [_join(group) for group in group_by(causes, _make_change_key).values()]
    return [_join(group) for group in group_by_flow(alike)]


def _make_change_key(cause: Cause) -> tuple[object, ...]:
    """What is the same for causes that are one: the guarded value, and the values that came, in their order."""
    if cause.family in MODES:
        return cause.family, cause.source, cause.values, cause.is_first
    if cause.family in _OBJECTS or not cause.values:
        return (id(cause),)
    own = cause.region, cause.is_still_static, cause.is_first
    return cause.family, cause.source, cause.values, cause.bounds, *own


def _join(causes: list[Cause]) -> Cause:
    if len(causes) == 1:
        return causes[0]
    rows = sorted((row for cause in causes for row in cause.recompiles), key=get_moment)
    own = {row.event_id for row in rows}
    shared = {row.event_id: row for cause in causes for row in cause.shared if row.event_id not in own}
    names = [(cause.kind, cause.source) for cause in causes if cause.source != causes[0].source]
    return Cause(
        recompiles=tuple(rows),
        source=causes[0].source,
        also=list_unique([*names, *(guard for cause in causes for guard in cause.also)]),
        is_still_static=causes[0].is_still_static,
        shared=tuple(shared.values()),
        also_named=list_unique(name for cause in causes for name in cause.also_named),
        facts=merge_facts([cause.facts for cause in causes]),
        derived=tuple(row for cause in causes for row in cause.derived),
        seen=tuple(sorted((row for cause in causes for row in cause.seen), key=get_moment)),
        is_first=causes[0].is_first,
        members=Members(
            list_unique([*names, *(guard for cause in causes for guard in cause.members.guards)]),
            list_unique(name for cause in causes for name in cause.members.named),
        ),
        user=merge_names([cause.user for cause in causes]),
    )
