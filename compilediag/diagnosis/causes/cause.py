"""Root causes of recompiles: what changed in the user's program, in whatever frames torch saw it, the recompiles that
it caused, and what they show about it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from ...decode.guards.guard_forms import FUNCTORCH_LEVELS
from ...decode.guards.guard_text import find_torch_source
from ...decode.guards.path import (
    Path,
    Step,
    format_expression,
    format_source,
    list_sources,
    name_any_instance,
    parse_path,
)
from ...events import (
    Compile,
    DynamicDecision,
    GraphBreak,
    GuardFailure,
    Recompile,
    RefusedCall,
    StackFrame,
    SymbolicShape,
)
from ...formatting import format_function, format_place, is_module_wrapper
from ..change import CallSite
from ..evidence import Evidence, Place, find_first, get_ids, get_place, group_by, kept, kept_after, sum_seconds
from ..recipes import RECIPES
from ..source_edits import parse_code
from .call_sites import SizeAt, UserNames, find_call_sites, find_result_name, merge_names
from .root_changes import (
    CauseKey,
    GuardChange,
    draw_graph,
    get_family,
    get_kind,
    get_moment,
    list_changes,
    list_closest_failures,
    list_failures,
)
from .value_facts import ValueFacts, find_optional_stacks, index_facts, merge_facts, read_integers

T = TypeVar("T")

#: Kinds of guards on modes of the whole program: where they recompile is no part of the cause.
MODES = ("global_state", "default_device", "mode_stack")
#: The sizes that torch always compiles on their own.
ZERO_ONE = frozenset({"0", "1"})
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_WHOLE = re.compile(r"-?\d{1,40}")
_FLOAT = re.compile(r"-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf)|nan", re.IGNORECASE)
#: torch's mark on the guard of a symbol that Python code needed as a number: Dynamo itself took the number out.
EVALUATED = "(_dynamo/variables/"
#: Guards on the object itself: that two objects look the same does not make them one cause.
_OBJECTS = ("identity", "dead_reference", "backend", "type", "alias", "other")
_SIZES = ("tensor_size", "symbolic_shape")
#: What a line has that reads a size itself: a loop, a range, a view.
_READS_SIZE = re.compile(r"\b(?:for|while|range|len|size|shape|view|reshape|numel|item|int)\b")


def get_value_type(value: str) -> str:
    """bool, int, float, str, none, tensor or other: the type of the value that this text describes."""
    if value in ("True", "False"):
        return "bool"
    if value == "None":
        return "none"
    if _WHOLE.fullmatch(value):
        return "int"
    if _FLOAT.fullmatch(value):
        return "float"
    if value.startswith("Tensor "):
        return "tensor"
    return "str" if value[:1] in ("'", '"') else "other"


def list_unique(values: Iterable[T]) -> tuple[T, ...]:
    """The values, each once, in the order of their first appearance."""
    return tuple(dict.fromkeys(values))


@dataclass(frozen=True)
class Members:
    """Other sizes and numbers that are the same change: (kind, source) of those in the same function, and torch's names
    of those in all functions.
    """

    guards: tuple[tuple[str, str], ...] = ()
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cause:
    """One change of the user's program, and all recompiles that it caused, oldest first, in one function or in several.

    `recompiles` are those at which its guard failed first, as torch reported them. If another guard failed first each
    time, `is_first` is False and they are those at which it failed too. `derived` are recompiles by values that follow
    from it: a product of sizes, the hidden states after a graph break. `shared` holds the recompiles of other causes at
    which its guard failed too: they stay until both causes are fixed. `seen` has each recompile at which its guard
    failed as if it had failed first, with the values that this guard saw.

    `source` is the value as the user would write it; all instances of a repeated module share one source. `also`
    holds (kind, source) of the guards that failed beside it in at least half of these recompiles, and `also_named`
    torch's names of those, where they are certain. `is_still_static` is true if an entry was bound to one value
    although the size or number was dynamic. `facts` is what torch found out about the value while it compiled.

    `members` are other names of the same change; `also` has those too, and guards of other causes. `user` is what the
    user's own code calls the value, and where.
    """

    recompiles: tuple[Recompile, ...]
    source: str
    also: tuple[tuple[str, str], ...] = ()
    is_still_static: bool = False
    shared: tuple[Recompile, ...] = ()
    also_named: tuple[str, ...] = ()
    facts: ValueFacts = ValueFacts()
    derived: tuple[Recompile, ...] = ()
    seen: tuple[Recompile, ...] = ()
    is_first: bool = True
    members: Members = Members()
    user: UserNames = UserNames()

    @cached_property
    def path(self) -> Path:
        """The guarded value. That of a guard on how several values relate is their names as they are."""
        return Path.of(self.source)

    @property
    def is_relation(self) -> bool:
        """True for a guard on how several values relate, and for one that names no value."""
        return not self.source or len(list_sources(self.source)) > 1

    @property
    def is_of_torch_module(self) -> bool:
        """True for a module of torch.nn that is compiled by itself: torch calls all of them through one function."""
        return self.path.root == "fn" and is_module_wrapper(*self.places[0][:2])

    @property
    def is_transform(self) -> bool:
        """True for a transform of torch.func, such as grad or vmap, in which it was called at some calls."""
        return self.source == FUNCTORCH_LEVELS

    @property
    def is_optimizer_state(self) -> bool:
        """True for `self.state` in the code of an optimizer, and for `self.state[parameter]`."""
        path = self.path.subject
        is_state = path.root == "self" and path.steps[:1] == (Step("attr", "state"),)
        return is_state and all(step.kind == "item" for step in path.steps[1:2])

    @cached_property
    def kind(self) -> str:
        """The kind of guard that failed first; a guard of dynamic shapes only if there is no other."""
        kinds = [get_kind(row.guard_kind) for row in self.recompiles]
        return next((kind for kind in kinds if kind != "symbolic_shape"), kinds[0])

    @property
    def family(self) -> str:
        return get_family(get_kind(self.recompiles[0].guard_kind), self.source)

    @property
    def call_site(self) -> CallSite | None:
        """The user's line that calls into compiled code; None if it is not known."""
        return self.user.site

    @property
    def expression(self) -> str | None:
        """The value in the names of that line; None if it has no name there."""
        return self.user.expression

    @property
    def values_at(self) -> dict[CallSite, str | None]:
        """Each of the user's lines that recompiled -> the value there, without a tensor's property."""
        named = {one.site: one.names.get(self.source) for one in self.user.sites}
        return named if self.call_site is None else {**named, self.call_site: self.user.value}

    @property
    def name(self) -> str:
        """What varies: in the names of the user's line, or as the module's own code names its attribute."""
        if self.path.is_stack_value:
            return self.name_handed_over(self.path)
        if self.is_of_torch_module and not self.expression:
            return replace(self.path, root="<compiled module>").code
        is_attribute = list_sources(self.source)[0].is_module_attribute
        return format_expression(self.source) if is_attribute or not self.expression else self.expression

    def name_handed_over(self, path: Path) -> str:
        """A value that Dynamo passed to the code after a graph break: the variable that gets what the call at the break
        returned, or where it comes from.
        """
        breaks = self.facts.graph_breaks
        result = find_result_name(breaks[0].user_code) if breaks and path.root == "___stack0" else None
        if result is not None:
            return Path(result, steps=path.steps).code
        line = f"the graph break at line {breaks[0].user_line}" if breaks else "a graph break"
        what = "a value" if path.dim is None else f"size {path.dim} of a tensor"
        return f"{what} from before {line}"

    @property
    def user_place(self) -> str:
        """`train.py:28`, the user's line that calls it; the functions that recompiled where that is not known."""
        site = self.call_site
        return self.place_text if site is None else format_place(site.file, site.line)

    @property
    def alone(self) -> Cause:
        """The cause without the guards of other causes that failed beside it."""
        return replace(self, also=self.members.guards, also_named=self.members.named)

    @property
    def count(self) -> int:
        return len(self.caused)

    @cached_property
    def caused(self) -> tuple[Recompile, ...]:
        """Its recompiles and those of derived values, oldest first."""
        return tuple(sorted((*self.recompiles, *self.derived), key=get_moment))

    @cached_property
    def failed(self) -> tuple[Recompile, ...]:
        """All recompiles that stay as long as it does, oldest first."""
        return tuple(sorted((*self.recompiles, *self.derived, *self.shared), key=get_moment))

    @property
    def max_per_function(self) -> int:
        """The recompiles of the function that it recompiled most often: once in each of five functions is once."""
        return max(Counter((get_place(row), row.region) for row in self.recompiles).values())

    @property
    def is_set_once(self) -> bool:
        """True for an attribute of a module or a global that recompiled each function once: a first call sets it."""
        return (self.path.is_module_attribute or self.path.scope == "G") and self.max_per_function == 1

    @property
    def is_filled(self) -> bool:
        """True for a container that is empty at the first call, and not again after it was filled. Hooks are not filled
        by a call: the program registers them.
        """
        if self.kind != "length" or len(self.values) != 2 or self.values[0] != "0" or self.is_of_hooks:
            return False
        return all(row.actual != "0" for row in self.seen or self.recompiles)

    @property
    def is_of_hooks(self) -> bool:
        """True for the hooks of a module."""
        return (self.path.subject.own_name or "").endswith("_hooks")

    @property
    def region(self) -> int | None:
        """The region of `torch.compile(isolate_recompiles=True)` that it recompiled; None outside of one."""
        return self.recompiles[0].region

    @property
    def seconds(self) -> float:
        """s of its recompiles, as far as they were timed; those of a guard that never failed first are another's."""
        return sum_seconds(row.lost_s for row in self.caused) if self.is_first else 0.0

    @property
    def seconds_at_stake(self) -> float:
        """s of all recompiles at which its guard failed: none of them can be saved while it stays."""
        return sum_seconds(row.lost_s for row in self.failed)

    @property
    def evidence(self) -> tuple[int, ...]:
        return get_ids(self.caused)

    @property
    def places(self) -> tuple[Place, ...]:
        """The functions that it recompiled, in order of appearance."""
        return list_unique(map(get_place, self.caused))

    @property
    def place_text(self) -> str:
        """`forward (model.py:30)`, and how many more functions."""
        shown, more = format_function(*self.places[0]), len(self.places) - 1
        return f"{shown} and {more} more function{'s' if more > 1 else ''}" if more else shown

    @property
    def user_code(self) -> str | None:
        """The text of the user's line that made the guard."""
        return find_first(row.user_code for row in self.recompiles)

    @property
    def user_place_text(self) -> str:
        """`model.py:31`: the user's line that made the guard; "" if it is not known."""
        file = find_first(row.user_file for row in self.recompiles)
        return format_place(file, find_first(row.user_line for row in self.recompiles))

    @cached_property
    def values(self) -> tuple[str, ...]:
        """What was seen, in order of appearance, each once: what the first entry needed, then what came."""
        # What a guard of dynamic shapes needs is a bound, not a value.
        found: list[str | None] = []
        for row in self.seen or self.recompiles:
            found += (None if row.guard_kind == "symbolic_shape" else row.expected, row.actual)
        return tuple(value for value in dict.fromkeys(found) if value is not None)

    @cached_property
    def bounds(self) -> tuple[str, ...]:
        """What guards of dynamic shapes needed, in order of appearance, each once."""
        bounds = [row.expected or "" for row in self.recompiles if row.guard_kind == "symbolic_shape"]
        return list_unique(filter(None, [bound.partition("  # ")[0].strip() for bound in bounds]))

    @cached_property
    def torch_sources(self) -> tuple[str, ...]:
        """torch's names of the value, one for each instance of a module and for each function, which gets it in
        its own way; empty if one of them is not certain.
        """
        names: dict[tuple[Place, str], str | None] = {}
        for place, source, reason in dict.fromkeys([(get_place(r), r.guard_source, r.reason) for r in self.recompiles]):
            if source:
                names[place, source] = names.get((place, source)) or find_torch_source(source, reason)
        found = list_unique(name for name in names.values() if name is not None)
        return () if None in names.values() else found

    @cached_property
    def torch_paths(self) -> tuple[Path, ...]:
        """The same as paths, as far as they can be parsed."""
        return tuple(path for name in self.torch_sources if (path := parse_path(name)) is not None)

    @property
    def item_count(self) -> int:
        """How many other items of the container that the value is in changed with it, as the tables of a batch do."""
        own, others = self.path, [Path.of(source) for _, source in self.members.guards]
        if not own.steps or own.steps[0].kind != "item":
            return 0
        alike = {
            one.steps[0] for one in others if one.root == own.root and one.steps[1:] == own.steps[1:] and one.steps
        }
        return len(alike - {own.steps[0]})

    @property
    def reasons(self) -> tuple[str, ...]:
        """torch's own texts, one for each recompile that has one."""
        return tuple(row.reason for row in self.recompiles if row.reason is not None)


# From what changed at each recompile to causes


@kept_after(
    *("meta", Compile, StackFrame, Recompile, GuardFailure, SymbolicShape, GraphBreak, RefusedCall, DynamicDecision),
    *(find_call_sites, list_changes, draw_graph, find_optional_stacks, index_facts),
)
def find_causes(evidence: Evidence) -> list[Cause]:
    """Find the root causes of all recompiles, in order of first appearance."""
    causes = [_add_facts(evidence, _make_cause(evidence, group)) for group in _group_changes(evidence)]
    # A batch size, a mode, a flag or a global that recompiled several functions is one change.
    alike = [_join(group) for group in group_by(causes, _make_change_key).values()]
    return leave_needed([_join(group) for group in _group_by_flow(alike)])


def _add_facts(evidence: Evidence, cause: Cause) -> Cause:
    """The cause with what torch found out about its value; without the line that fixed its size, if that line only
    calculates with several tensors.

    torch makes the sizes of two tensors dynamic one after the other. In between, the one that is dynamic has to equal
    the one that is not. If both are dynamic, none is fixed.
    """
    beside = [source for kind, source in cause.also if kind in _SIZES]
    facts = index_facts(evidence).find(cause.seen or cause.recompiles, cause.source, beside)
    need = facts.value_need
    is_tied = any(kind == "tensor_size" for kind, _ in cause.members.guards)
    if need is None or not is_tied or not need.code or _READS_SIZE.search(need.code):
        return replace(cause, facts=facts)
    return replace(cause, is_still_static=False, facts=replace(facts, value_need=None, exclusions=()))


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

    def add(self, change: GuardChange, is_equal: bool) -> None:
        """Take a change; if not `is_equal`, its values follow from those of the root."""
        number = change.event_id
        self.members.setdefault((change.row.guard_source or "", change.row.reason), change)
        if is_equal and (change.key == self.key or number not in self.seen):
            self.seen[number] = change
            self.derived.pop(number, None)
        elif number not in self.seen:
            self.derived.setdefault(number, change)

    def split(self, changes: Mapping[int | None, GuardChange]) -> tuple[tuple[Recompile, ...], tuple[Recompile, ...]]:
        """The recompiles that are attributed to the root, and the others."""
        own = tuple(change.row for number, change in changes.items() if number in self.attributed)
        return own, tuple(change.row for number, change in changes.items() if number not in self.attributed)


def _group_changes(evidence: Evidence) -> list[_Group]:
    """The changes of all recompiles by their roots, in order of first appearance."""
    graph, before = draw_graph(evidence)
    groups: dict[CauseKey, _Group] = {}
    attributed: dict[int | None, CauseKey] = {}
    for changes in list_changes(evidence):
        for change in changes:
            is_equal = graph.is_equal(change)
            for root in graph.find_roots(change):
                groups.setdefault(root, _Group(root)).add(change, is_equal)
        found, number = graph.find_roots(changes[0]), changes[0].event_id
        # Of the sizes that a product has, the one that recompiled the frames before in the same call.
        attributed[number] = next((root for root in found if root == attributed.get(before[number])), found[0])
        groups[attributed[number]].attributed.add(number)
    return list(groups.values())


def _make_cause(evidence: Evidence, group: _Group) -> Cause:
    source, is_first, members = group.key.source, bool(group.attributed), _find_members(group)
    seen = tuple(change.row for change in group.seen.values())
    (own, others), (derived, derived_others) = group.split(group.seen), group.split(group.derived)
    rows = own or seen
    # The guards that failed in the same entry at the same recompile, in at least half of the cases.
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        guards = {_get_guarded(failure) for failure in list_closest_failures(evidence, row)}
        counts.update(sorted(guard for guard in guards if guard[1] != source))
    also = tuple(guard for guard, count in counts.most_common(8) if 2 * count >= len(rows))
    beside = [failure for row in rows for failure in list_failures(evidence, row)]
    return Cause(
        recompiles=rows,
        source=source,
        also=also,
        is_still_static=_is_still_static(evidence, rows, beside, source),
        shared=tuple(sorted((*others, *derived_others), key=get_moment)) if is_first else (),
        also_named=list_unique((*_find_also_names(also, beside), *members.named)),
        members=members,
        user=find_call_sites(evidence).find_names(
            seen, [change.row for change in group.members.values()], _list_sizes(evidence, rows, group, also)
        ),
        derived=derived if is_first else derived_others,
        seen=seen,
        is_first=is_first,
    )


def _get_guarded(failure: GuardFailure) -> tuple[str, str]:
    """Kind and source of a guard that failed."""
    return get_kind(failure.guard_kind), name_any_instance(failure.guard_source or "")


def _find_also_names(also: tuple[tuple[str, str], ...], failures: list[GuardFailure]) -> tuple[str, ...]:
    """torch's names of the sizes and numbers in `also` that a setting can make dynamic."""
    varying = (
        one
        for one in failures
        if one.guard_kind in _SIZES or (one.guard_kind == "value" and read_integers(one) is not None)
    )
    pairs = list_unique((one.guard_source or "", one.guard) for one in varying if _get_guarded(one) in also)
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
    evidence: Evidence, rows: Sequence[Recompile], group: _Group, also: Sequence[tuple[str, str]]
) -> Iterator[SizeAt]:
    """The sizes that changed with a cause, each with its function."""
    changes = (change for change in group.members.values() if change.numbers is not None and change.is_size)
    yield from ((change.key.place, change.key.source) for change in changes)
    for row in rows:
        guards = map(_get_guarded, list_closest_failures(evidence, row))
        yield from ((get_place(row), guard[1]) for guard in guards if guard in also and guard[0] in _SIZES)


def _is_still_static(
    evidence: Evidence, rows: Sequence[Recompile], failures: Sequence[GuardFailure], source: str
) -> bool:
    """True if an entry was bound to one value of this source although it was dynamic there: because Python code needed
    it, or although torch had made that size dynamic for the closest entry.
    """
    for failure in failures:
        needs_number = EVALUATED in (failure.guard or "") and NUMBER.fullmatch(failure.expected or "")
        if needs_number and name_any_instance(failure.guard_source or "") == source:
            return True
    decided = _find_dynamic_sizes(evidence)
    sizes = (row for row in rows if row.guard_kind == "tensor_size" and row.expected not in ZERO_ONE)
    return any((row.closest_compile_key or "", row.guard_source or "") in decided for row in sizes)


@kept
def _find_dynamic_sizes(evidence: Evidence) -> set[tuple[str, str]]:
    """The sizes that torch made dynamic by itself: (compile key of the entry, source)."""
    return {
        (row.compile_key, f"{format_source(row.source)}.size()[{row.dim}]")
        for row in evidence.rows(DynamicDecision)
        if row.compile_key is not None and row.source and (row.dim or "").isdecimal()
    }


def _make_change_key(cause: Cause) -> tuple[object, ...]:
    """What is the same for causes that are one: the guarded value, and the values that came, in their order."""
    if cause.is_transform:
        return cause.family, cause.source, cause.is_first
    if cause.family in MODES:
        return cause.family, cause.source, cause.values, cause.is_first
    if cause.family in _OBJECTS or not cause.values:
        return (id(cause),)
    own = cause.region, cause.is_still_static, cause.is_first
    if cause.family == "dict_keys" and cause.path.is_module_attribute and cause.path.steps[-1].kind == "item":
        # The keys that each of several objects has, one after the other: `self.scales['a']`, `self.scales['b']`.
        return cause.family, cause.path.parent.text, cause.recompiles[0].function, cause.recompiles[0].file, *own
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


# What one call of the user's own code gives and a later one gets: `hidden = first(batch)`, then `second(hidden)`


def _group_by_flow(causes: Sequence[Cause]) -> list[list[Cause]]:
    """The causes, those together that are one size in several calls of the user's function."""
    groups: list[list[Cause]] = []
    comparable: dict[tuple[object, ...], list[list[Cause]]] = defaultdict(list)
    for cause in causes:
        key: tuple[object, ...] = (id(cause),)
        if cause.path.is_size and (site := cause.call_site) is not None and cause.user.value is not None:
            # Of sizes that changed alike in one function, one can come from the other.
            key = site.file, site.function, cause.values, cause.bounds, cause.is_still_static, cause.is_first
        alike = comparable[key]
        found = next((group for group in alike if any(_is_passed_on(one, cause) for one in group)), None)
        if found is None:
            groups.append([cause])
            alike.append(groups[-1])
        else:
            found.append(cause)
    return groups


def _is_passed_on(origin: Cause, cause: Cause) -> bool:
    """True if the value of `cause` is that of `origin`, or what the call with that value returned."""
    site = origin.call_site
    if origin.user.value == cause.user.value:
        return True
    tree = parse_code((site.code if site else None) or "")
    statement = tree.body[0] if tree else None
    assigned = statement.targets if isinstance(statement, ast.Assign) else []
    nodes = (node for target in assigned for node in ast.walk(target))
    return any(isinstance(node, ast.Name) and node.id == cause.user.value for node in nodes)


# Changes that cost nothing, because their calls need a compiled version of their own anyway


def leave_needed(causes: Sequence[Cause]) -> list[Cause]:
    """The causes without those whose recompiles another one needs: evaluation has other batch sizes than training.

    Changing such a cause would save nothing. Its recompiles are then those of the one that needs them.
    """
    needed = sorted(filter(is_another_way, causes), key=lambda cause: not cause.is_first)
    by_owner: dict[int, set[int | None]] = {}
    left: set[int] = set()
    for cause in causes:
        owner = next((one for one in needed if one is not cause and _covers(one, cause, needed)), None)
        if owner is not None:
            left.add(id(cause))
            by_owner.setdefault(id(owner), set()).update(row.event_id for row in cause.caused if cause.is_first)
    return [_take(cause, by_owner.get(id(cause), set())) for cause in causes if id(cause) not in left]


def is_another_way(cause: Cause) -> bool:
    """True for another way to call a function, which has a compiled version of its own whatever else changes: with and
    without gradients, in a transform of torch.func, training and evaluation, a flag, a value that is None at some
    calls, a container that is empty at the first one.
    """
    files = [row.file for row in cause.recompiles]
    if any(recipe.removes_expected and recipe.is_about(cause.source, files) for recipe in RECIPES):
        return False
    types = {get_value_type(value) for value in cause.values}
    match cause.kind:
        case "global_state":
            # The gradient mode of another thread is a mistake: each thread has its own.
            return cause.source == "grad_mode" and cause.facts.thread is None
        case "value":
            is_handed_over = cause.path.is_stack_value and bool(cause.facts.graph_breaks)
            return (types == {"bool"} or "none" in types) and not is_handed_over
        case "type":
            return "NoneType" in cause.values and not cause.source.endswith("()")  # Not a weak reference.
        case "mode_stack":
            return cause.is_transform
        case "length":
            return cause.is_filled and not cause.is_optimizer_state
    return False


def _covers(owner: Cause, cause: Cause, needed: Sequence[Cause]) -> bool:
    """True if all recompiles of `cause` are needed because of `owner`; of two ways to call, that which torch names."""
    own, others = _list_numbers(owner), _list_numbers(cause)
    place = next((at for at, one in enumerate(needed) if one is cause), None)
    if place is None:
        return others <= own
    return others == own and any(one is owner for one in needed[:place])


def _list_numbers(cause: Cause) -> set[int | None]:
    return {row.event_id for row in cause.failed}


def _take(cause: Cause, numbers: set[int | None]) -> Cause:
    """The cause with more recompiles as its own, at which its guard failed too."""
    if not numbers:
        return cause
    own = numbers | ({row.event_id for row in cause.caused} if cause.is_first else set())
    seen = {row.event_id: row for row in cause.seen}
    failed = {row.event_id: row for row in cause.failed}
    return replace(
        cause,
        recompiles=tuple(row for number, row in seen.items() if number in own),
        derived=tuple(row for number, row in failed.items() if number in own and number not in seen),
        shared=tuple(row for number, row in failed.items() if number not in own),
        is_first=True,
    )
