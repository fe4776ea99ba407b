"""What changed at each recompile, and which of the changes are the user's own.

A change is a guard that failed in the closest entry, with the value that it saw before and after. A size is seen under
many names while one call runs: as an argument of each frame, as the size of what is computed from it, multiplied by
another size, as a number after a graph break. Only the first is a root. The changes are the nodes of a graph whose
edges lead from a change to those that it follows from. Each edge rule names what needs it: programs of
tests/advice/programs, or tests of tests/unit/test_root_causes.py.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from ...decode.call_stacks import is_torch_file
from ...decode.guards.guard_forms import FUNCTORCH_LEVELS
from ...decode.guards.guard_text import find_torch_source, parse_guard
from ...decode.guards.path import ANY, Path, Step, list_sources, name_any_instance
from ...events import GuardFailure, Recompile
from ...formatting import cache_short, format_first_line, is_module_wrapper, is_resumed
from ..evidence import Evidence, Place, group_by, kept
from ..recipes import RECIPES
from .call_sites import CallSites, find_call_sites
from .value_facts import PARAMETER, read_integers

#: Guards on a whole object: what is inside of another object differs as a matter of course.
_WHOLE_OBJECT = ("type", "identity", "dead_reference", "tensor_rank")
#: Guards that change with another property of the same tensor.
_CONSEQUENCES = ("dispatch_keys", "alias", "other")
#: How the dispatch keys begin that tensors have in a transform of torch.func.
_TRANSFORM_KEYS = "FuncTorch"
#: Sizes of one tensor whose products are tried.
_MAX_SIZES = 6


def get_kind(guard_kind: str | None) -> str:
    """The kind of a guard; "other" where it is not known."""
    return guard_kind or "other"


def get_family(kind: str, source: str) -> str:
    """The kind under which guards are grouped: a value's guard before and after it became dynamic is one family."""
    if kind != "symbolic_shape" or len(list_sources(source)) > 1:
        return kind
    return "tensor_size" if Path.of(source).is_size else "value"


def get_moment(row: Recompile) -> tuple[int, int]:
    """Sorts recompiles by their time."""
    return row.time_ns, row.event_id or 0


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

    `row` is the recompile as if this guard had been the first to fail. `name` is what the user's code calls the value,
    and the kind of its guard; None if it has no name there. `numbers` are the size or integer that the entry needs and
    the one that came; None for anything else. `is_parameter`: the value is a Parameter, or of one.
    """

    key: CauseKey
    row: Recompile
    is_first: bool
    name: str | None = None
    is_parameter: bool = False

    @property
    def event_id(self) -> int | None:
        return self.row.event_id

    @property
    def numbers(self) -> tuple[int, int] | None:
        return read_integers(self.row) if self.key.family in ("tensor_size", "value") else None

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


@kept
def list_changes(evidence: Evidence) -> list[list[GuardChange]]:
    """The guards that failed at each recompile, in the order of time: the first one first, without those that follow
    from another one of them.
    """
    sites = find_call_sites(evidence)
    found: list[list[GuardChange]] = []
    for row in sorted(evidence.rows(Recompile), key=get_moment):
        changes = _list_failed(evidence, row)
        found.append([])
        strides: set[Path] = set()
        for change in changes:
            if not change.is_first and _follows_any(change, changes):
                continue
            if change.key.family == "tensor_stride":
                # Another memory layout changes most strides of a tensor: one of them is enough.
                if (tensor := change.key.path.subject) in strides:
                    continue
                strides.add(tensor)
            name = sites.name(row.compile_key, change.row.guard_source).key
            found[-1].append(change if name is None else replace(change, name=f"{change.key.family}:{name}"))
    return found


def _list_failed(evidence: Evidence, row: Recompile) -> list[GuardChange]:
    """The guards that failed at a recompile, each once, the first one first."""
    failures, first = list_closest_failures(evidence, row), row
    if row.guard_source and find_torch_source(row.guard_source, row.reason) is None:
        # torch's reason is of another guard that failed before this one.
        own = next((failure.guard for failure in failures if failure.guard_source == row.guard_source), None)
        first = replace(row, reason=own or row.reason)
    first = _name_transform(first)
    key = make_cause_key(first)
    found = {key: GuardChange(key, first, True)}
    for failure in failures:
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
        view = _name_transform(view)
        key = make_cause_key(view)
        found.setdefault(key, GuardChange(key, view, False))
    parameters = {name_any_instance(one.guard_source or "") for one in failures if PARAMETER.match(one.guard or "")}
    found = {key: replace(one, is_parameter=key.source in parameters) for key, one in found.items()}
    # torch calls all compiled modules of torch.nn through one function: with another module all else differs. For that
    # a guard fails on the module itself, or on a size of its parameters.
    of_modules = (key for key in found if key.path.root == "fn" and (not key.path.steps or key.family == "tensor_size"))
    other = next(of_modules, None) if is_module_wrapper(row.function, row.file) else None
    return list(found.values()) if other is None else [replace(found[other], is_first=True)]


def _name_transform(row: Recompile) -> Recompile:
    """A recompile by dispatch keys that all tensors have in a transform of torch.func is one by the transform."""
    keys = f"{row.expected} {row.actual}" if row.guard_kind == "dispatch_keys" else ""
    if _TRANSFORM_KEYS not in keys:
        return row
    return replace(row, guard_kind="mode_stack", guard_source=FUNCTORCH_LEVELS, expected=None, actual=None)


def _follows_any(change: GuardChange, changes: Sequence[GuardChange]) -> bool:
    """True if a guard failed because another one did, which is then the change."""
    if change.key.family == "tensor_stride":
        # The stride of a dense tensor is a product of its sizes.
        subject, own = change.key.path.subject, _get_ratio(change)
        sizes = {other.key.path: _get_ratio(other) for other in changes if other.is_size}
        ratios = [ratio for path, ratio in sizes.items() if ratio is not None and path.owner == subject]
        subsets = (subset for count in range(1, len(ratios) + 1) for subset in combinations(ratios[:_MAX_SIZES], count))
        if any(math.prod(subset) == own for subset in subsets) or (own is None and sizes):
            return True
    return any(_follows(change, other) for other in changes if other is not change)


def _get_ratio(change: GuardChange) -> Fraction | None:
    """How many times as large it is; None if it is not a number, or was 0."""
    pair = read_integers(change.row)
    return Fraction(pair[1], pair[0]) if pair is not None and pair[0] else None


def _follows(change: GuardChange, other: GuardChange) -> bool:
    """True if a guard had to fail because the other one did: it needs no change of its own."""
    if change.is_relation:
        return other.is_size or (other.is_relation and other.is_first)
    if change.key.family in _CONSEQUENCES:
        return not (other.key.family in _CONSEQUENCES and other.is_first < change.is_first)
    if other.key.family in _WHOLE_OBJECT or other.row.expected == "None" or other.row.actual == "None":
        return other.key.path.subject.holds(change.key.path.subject)
    if change.key.family == "dict_keys" and other.key.family == "hasattr":
        return other.key.source == change.key.source
    return change.key.family == "mode_stack" and other.key.family == "default_device"


#: The file of torch through which a call enters compiled code.
_ENTRANCES = ("_dynamo/eval_frame.py", "_dynamo\\eval_frame.py")
#: Changes that are looked back at: a call can run through thousands of frames.
MAX_EARLIER = 256
#: Changes that a derived one is compared with, the latest ones: products try each pair.
_MAX_KNOWN = 48
#: A size that differs by so little from another one, by the same before and after, is derived from it: labels[:, 1:].
_MAX_OFFSET = 2
_TENSOR_PROPERTIES = ("tensor_dtype", "tensor_device", "tensor_rank", "requires_grad")
#: What all tensors of a module get at once: model.half(), model.to(device), model.requires_grad_(False).
_MODULE_PROPERTIES = ("tensor_dtype", "tensor_device", "requires_grad")
#: Values that only the name connects: many flags go from True to False.
_VALUES = ("value", "type", "length")
#: Guards that fail when something appears.
_PRESENCE = ("dict_keys", "value", "type", "hasattr")
#: From so many items of one container on that change at one recompile, they are one change: the tables of a batch.
_MANY_ITEMS = 4
#: What flex_attention's mask has for a length: the length, and numbers of blocks.
_BLOCK_MASK = "block_mask"

#: A function by its name and file.
Function = tuple[str | None, str | None]


# Which recompiles belong to one call of the user's code


class OuterCall(NamedTuple):
    """Where a compile happened: the key of the stack outside of the outermost compiled call, and the functions inside
    of it that were running.
    """

    stack: str
    running: frozenset[Function]


class CallInstance:
    """The recompiles of one call so far: what each guard saw, and the changes in the order of the frames."""

    def __init__(self) -> None:
        self.changes: list[GuardChange] = []
        self._values: dict[CauseKey, str | None] = {}
        self._functions: set[Function] = set()

    def fits(self, changes: Sequence[GuardChange]) -> bool:
        """False if this recompile is of a later call: its function ran already, or a guard sees another value."""
        place = changes[0].key
        if (place.function, place.file) in self._functions:
            return False
        return all(self._values.get(change.key, change.row.actual) == change.row.actual for change in changes)

    def add(self, changes: Sequence[GuardChange], running: frozenset[Function]) -> None:
        """Take the changes of one more recompile, and the functions that were running."""
        place = changes[0].key
        self.changes += changes
        self._values.update((change.key, change.row.actual) for change in changes)
        # Code after a graph break belongs to a function that ran before.
        self._functions |= {(place.function, place.file), *(one for one in running if not is_resumed(one[0]))}


class CallInstances:
    """Gives each recompile the call that it happened in. Recompiles have to come in the order of their time."""

    def __init__(self, evidence: Evidence):
        self._stacks = evidence.stacks
        self._outer: dict[str, OuterCall | None] = {}
        self._instances: dict[tuple[object, ...], CallInstance] = {}

    def add(self, changes: Sequence[GuardChange]) -> list[GuardChange]:
        """Add a recompile, given by its changes; returns what changed in this call before, in the order of time.

        Nothing is known of other recompiles of the call where the stack is not known.
        """
        row = changes[0].row
        stack = self._stacks.find(row.compile_key)
        if stack is not None and stack not in self._outer:
            # The frames around the compiled one, innermost first.
            callers = [*self._stacks.walk(stack)][1:]
            files = [frame.file or "" for frame in callers]
            entrances = [at for at, file in enumerate(files) if is_torch_file(file) and file.endswith(_ENTRANCES)]
            outside = entrances[-1] + 1 if entrances else 0
            running = ((one.function, one.file) for one in callers[:outside] if not is_torch_file(one.file or ""))
            is_known = outside < len(callers)
            self._outer[stack] = OuterCall(callers[outside].stack or "", frozenset(running)) if is_known else None
        outer = self._outer.get(stack or "")
        if outer is None:
            return []
        place = row.rank, row.pid, row.thread, outer.stack
        instance = self._instances.get(place)
        if instance is None or not instance.fits(changes):
            instance = self._instances[place] = CallInstance()
        before = instance.changes[-MAX_EARLIER:]
        instance.add(changes, outer.running)
        return before


# The graph


class Node(NamedTuple):
    """A guard at one recompile."""

    key: CauseKey
    event_id: int | None


class Edge(NamedTuple):
    """What a change follows from. `is_equal`: it has the values of the first of its origins."""

    change: GuardChange
    origins: tuple[Node, ...]
    is_equal: bool


@dataclass(frozen=True)
class RecompileStep:
    """One recompile while its edges are drawn: its changes, and those of earlier frames in the same call."""

    graph: ChangeGraph
    changes: Sequence[GuardChange]
    upstream: Sequence[GuardChange]


class ChangeGraph:
    """Which changes follow from which. Recompiles are added in the order of their time, then edges between peers."""

    def __init__(self, sites: CallSites):
        self.sites = sites
        #: The changes of each guard, in the order of time.
        self.changes: dict[CauseKey, list[GuardChange]] = {}
        #: The first guard on each value that the user's code names.
        self.named: dict[str, CauseKey] = {}
        #: What a guard was equal to when it first followed, and what it was computed from when it last did.
        self.carried: dict[CauseKey, Node] = {}
        self.computed: dict[CauseKey, tuple[Node, ...]] = {}
        #: How often two guards of one recompile changed in the same way, and those that differ by as little each time.
        self.peers: Counter[tuple[CauseKey, CauseKey]] = Counter()
        self.near: set[frozenset[CauseKey]] = set()
        #: Containers whose items change together -> the first of these items.
        self.containers: dict[CauseKey, CauseKey] = {}
        self._edges: dict[Node, Edge] = {}
        self._roots: dict[Node, tuple[CauseKey, ...]] = {}
        self._explained: dict[CauseKey, bool] = {}

    def add(self, changes: Sequence[GuardChange], earlier: Sequence[GuardChange]) -> None:
        """Take the changes of one recompile, and those of earlier recompiles in the same call."""
        for change in changes:
            self.changes.setdefault(change.key, []).append(change)
            if change.name is not None:
                self.named.setdefault(change.name, change.key)
        upstream = [one for one in earlier if one.key.place != changes[0].key.place][-_MAX_KNOWN:]
        step = RecompileStep(self, changes, upstream)
        for rule in SAME_VALUE_RULES:
            for edge in rule(step):
                self.draw(edge)
                self.carried.setdefault(edge.change.key, edge.origins[0])
        for rule in CONSEQUENCE_RULES:
            for edge in rule(step):
                self.draw(edge)
        for one, other in combinations(changes[:_MAX_KNOWN], 2):
            is_near = _is_near(one, other)
            if is_near or _is_same_change(one, other):
                self.peers[one.key, other.key] += 1
            if is_near:
                self.near.add(frozenset((one.key, other.key)))

    def draw(self, edge: Edge) -> None:
        """Add an edge. Of several from one change, the last one counts."""
        origins = tuple(origin for origin in edge.origins if origin.key != edge.change.key)
        if origins:
            self._edges[get_node(edge.change)] = edge._replace(origins=origins)

    def follows(self, change: GuardChange) -> bool:
        """True if a change has an edge: it follows from another one."""
        return get_node(change) in self._edges

    def find_roots(self, change: GuardChange) -> tuple[CauseKey, ...]:
        """The roots of a change: itself, or what it follows from each time that it occurs."""
        return self._find_roots(get_node(change), frozenset())

    def _find_roots(self, node: Node, visited: frozenset[Node]) -> tuple[CauseKey, ...]:
        if node not in self._roots:
            origins = () if node in visited else self._list_origins(node)
            found = [root for origin in origins for root in self._find_roots(origin, visited | {node})]
            self._roots[node] = tuple(dict.fromkeys(found)) or (node.key,)
        return self._roots[node]

    def is_equal(self, change: GuardChange) -> bool:
        """True if a change has the values of its root, or is the root."""
        node, visited = get_node(change), set[Node]()
        while node not in visited and (origins := self._list_origins(node)):
            visited.add(node)
            if not self._edges[node].is_equal:
                return False
            node = origins[0]
        return True

    def _list_origins(self, node: Node) -> tuple[Node, ...]:
        """What a change follows from; nothing unless every change of its guard follows from another one."""
        known = self._explained.get(node.key)
        if known is None:
            known = self._explained[node.key] = all(map(self.follows, self.changes[node.key]))
        return self._edges[node].origins if known else ()


def get_node(change: GuardChange) -> Node:
    """The node of a change."""
    return Node(change.key, change.event_id)


@kept
def draw_graph(evidence: Evidence) -> tuple[ChangeGraph, dict[int | None, int | None]]:
    """The graph of all changes, and for each recompile the one before it in the same call."""
    instances, graph = CallInstances(evidence), ChangeGraph(find_call_sites(evidence))
    before: dict[int | None, int | None] = {}
    for changes in list_changes(evidence):
        earlier = instances.add(changes)
        graph.add(changes, earlier)
        before[changes[0].event_id] = earlier[-1].event_id if earlier else None
    for edge in follow_peer(graph):
        graph.draw(edge)
    return graph, before


# Edge rules: a change that has the values of another one


def follow_name(step: RecompileStep) -> Iterator[Edge]:
    """A value that has one name at the user's line is one value, in whatever frame it recompiles.

    `test_a_value_that_the_user_names_is_one_cause_in_whatever_frame_it_recompiles`.
    """
    graph = step.graph
    for change in step.changes:
        first = change.key if change.name is None else graph.named[change.name]
        if first != change.key:
            yield Edge(change, (get_node(graph.changes[first][-1]),), True)


def follow_earlier_frame(step: RecompileStep) -> Iterator[Edge]:
    """A value that changed as one did in an earlier frame of the same call was passed on.

    `boxes_from_tensors`.
    """
    for change in step.changes:
        same = next((one for one in step.upstream if _can_carry(change, one)), None)
        if same is not None and not step.graph.follows(change):
            yield Edge(change, (get_node(same),), True)


def follow_as_before(step: RecompileStep) -> Iterator[Edge]:
    """A value without a name that was once passed on is passed on each time.

    `test_a_value_without_a_name_that_was_passed_on_once_is_passed_on_each_time`.
    """
    graph = step.graph
    for change in step.changes:
        if change.key in graph.carried and not graph.follows(change) and change.name is None:
            yield Edge(change, (graph.carried[change.key],), True)


# Edge rules: a change that is a consequence of another one


def follow_computed_size(step: RecompileStep) -> Iterator[Edge]:
    """A size that can be computed from others of the call: a multiple of one, a product of two, one more or less.

    `test_a_multiple_and_a_product_of_sizes_follow_from_them`.
    """
    graph = step.graph
    own = [one for one in step.changes if graph.follows(one) or one.name is not None]
    for change in step.changes if step.upstream else ():
        if change.numbers is None or not _is_derivable(change) or any(change is one for one in own):
            continue
        found = next(_find_origins(change, [*step.upstream, *own]), ())
        origins = tuple(map(get_node, found)) or graph.computed.get(change.key, ())
        if origins:
            graph.computed[change.key] = origins
            yield Edge(change, origins, False)


def follow_length_of_mask(step: RecompileStep) -> Iterator[Edge]:
    """A block mask is made for the length of the tensors that it is passed with; its sizes 0 and 1 are special.

    `test_a_block_mask_follows_the_length_that_it_is_made_for`, in tests/unit/test_diagnosis.py.
    """
    lengths = [one for one in step.changes if one.is_size and not _is_of_block_mask(one)]
    for change in step.changes:
        if _is_of_block_mask(change) and change.numbers is not None and not {0, 1} & {*change.numbers}:
            yield Edge(change, tuple(map(get_node, lengths[:1])), False)


def follow_related_sizes(step: RecompileStep) -> Iterator[Edge]:
    """A relation between sizes fails because of the sizes that changed with it.

    `test_a_relation_of_sizes_follows_from_the_size_that_changed`.
    """
    sizes = tuple(get_node(one) for one in step.changes if one.is_size)
    for change in step.changes:
        if change.is_relation:
            yield Edge(change, sizes, False)


def follow_first_layer(step: RecompileStep) -> Iterator[Edge]:
    """An attribute that all layers have, which one line reads, is set in all of them at once.

    `test_one_attribute_of_all_layers_is_one_cause_if_one_line_reads_it`.
    """
    values = [one for one in step.changes if one.key.family in _VALUES and _are_attributes(one)]
    read = [one for one in values if one.row.user_line]
    same = group_by(
        read,
        lambda one: (one.key.family, _get_last_name(one), one.row.user_file, one.row.user_line, _get_pair(one)),
    )
    for first, *others in same.values():
        yield from (Edge(change, (get_node(first),), True) for change in others)


def follow_first_item(step: RecompileStep) -> Iterator[Edge]:
    """The items of one container that change at one recompile are one change: the tables of a batch, the numbers that
    `tolist()` gives after a graph break.

    `many_tables_of_one_batch`, `numbers_of_one_tolist`.
    """
    graph = step.graph
    items: list[tuple[GuardChange, CauseKey]] = []
    for change in step.changes:
        path, family = change.key.path, change.key.family
        is_item = path.steps[:1] != () and path.steps[0].kind == "item"
        # An item of an argument, or of what a graph break hands over.
        if is_item and (family == "tensor_size" or (family == "value" and path.is_stack_value)):
            any_item = replace(path, steps=(Step("item", ANY), *path.steps[1:]))
            items.append((change, change.key._replace(source=any_item.text)))
    counts = Counter(container for _, container in items)
    for change, container in items:
        if counts[container] >= (2 if change.key.path.is_stack_value else _MANY_ITEMS):
            graph.containers.setdefault(container, change.key)
        first = graph.containers.get(container, change.key)
        if first != change.key and not graph.follows(change):
            yield Edge(change, (Node(first, change.event_id),), False)


def follow_library(step: RecompileStep) -> Iterator[Edge]:
    """What a library changes at once is known from its recipe.

    `peft_adapters` of tests/libraries/programs.
    """
    changes = step.changes
    for recipe in RECIPES:
        leaders = [one for one in changes if recipe.follows and re.search(recipe.source, one.key.source)]
        if leaders and recipe.is_of(changes[0].key.file):
            leader = get_node(min(leaders, key=lambda one: len(one.key.source)))
            followers = (change for change in changes if re.search(recipe.follows, change.key.source))
            yield from (Edge(change, (leader,), False) for change in followers)


EdgeRule = Callable[[RecompileStep], Iterable[Edge]]
#: Of these, the first one that explains a change counts.
SAME_VALUE_RULES: tuple[EdgeRule, ...] = (follow_name, follow_earlier_frame, follow_as_before)
#: Of these, the last one that explains a change counts.
CONSEQUENCE_RULES: tuple[EdgeRule, ...] = (
    follow_computed_size,
    follow_length_of_mask,
    follow_related_sizes,
    follow_first_layer,
    follow_first_item,
    follow_library,
)


# The edge rule that needs all recompiles: guards of one function that change alike


def follow_peer(graph: ChangeGraph) -> Iterator[Edge]:
    """Of the guards of one function that changed in the same way each time, one stands for all.

    `three_tensors_of_one_length`; for sizes that differ by one `two_sizes_change_together`, for the parameters of
    another module `layers_in_a_row`, for a property of all its tensors `a_frozen_reference_model`, for a tensor that is
    sometimes absent `other_keys_and_other_lengths`, and for what must not be joined `rotary_tables_that_grow`.
    """
    absent = {(key.place, key.source) for key in graph.changes if key.family in _PRESENCE}

    def is_sometimes_absent(key: CauseKey) -> bool:
        """True for a size of a tensor that is missing or None at some calls, so that it cannot change at each."""
        return key.family == "tensor_size" and (key.place, key.path.owner.text) in absent

    order = {key: _rank(graph, changes[0], at) for at, (key, changes) in enumerate(graph.changes.items())}
    # A guard that is a bound on a symbol is not counted: torch names one of the sizes that have it.
    named = {
        key: sum(change.row.guard_kind != "symbolic_shape" for change in changes)
        for key, changes in graph.changes.items()
    }
    for pair, count in sorted(graph.peers.items(), key=lambda item: sorted(order[key] for key in item[0])):
        first, second = sorted(pair, key=order.__getitem__)
        if is_sometimes_absent(first):
            first, second = second, first
        whole = named[first] <= count or is_sometimes_absent(second)
        if whole and len(graph.changes[second]) == count and _can_join(graph, first, second, count):
            origins = {change.event_id: change for change in graph.changes[first]}
            for change in graph.changes[second]:
                if not graph.follows(change):
                    origin = origins.get(change.event_id)
                    is_equal = origin is None or change.numbers is None or change.numbers == origin.numbers
                    yield Edge(change, (Node(first, change.event_id),), is_equal)


def _rank(graph: ChangeGraph, change: GuardChange, number: int) -> tuple[bool, bool, bool, int, int]:
    """Sorts guards: those on parameters, which torch keeps static, then sizes as the user's call names them, and
    numbers as the code reads them.
    """
    position = change.row.user_line
    if change.is_size:
        position = graph.sites.name(change.row.compile_key, change.row.guard_source).position
    is_of_module = _is_of_module(change) or (change.is_size and change.is_parameter)
    return not is_of_module, not change.is_size, position is None, position or 0, number


def _can_join(graph: ChangeGraph, first: CauseKey, second: CauseKey, count: int) -> bool:
    """A number that is equal to a size once can be a coincidence, and so can two sizes that differ by as much."""
    if frozenset((first, second)) in graph.near:
        return count > 1
    return first.family == second.family or (
        count > 1 and not (first.path.is_module_attribute or second.path.is_module_attribute)
    )


def _can_carry(change: GuardChange, origin: GuardChange) -> bool:
    """True if `change` can be what became of `origin` in another frame: the same values, of the same kind of thing."""
    if change.key.family == origin.key.family == "dead_reference":
        return True  # An object that died, and what it held.
    if (change.row.expected, change.row.actual) != (origin.row.expected, origin.row.actual) or not change.row.actual:
        return False
    if change.key.family != origin.key.family:
        return change.numbers is not None and origin.is_size and _is_derivable(change)
    if change.is_size or change.key.family in _TENSOR_PROPERTIES:
        return True
    if change.numbers is not None and _is_derivable(change) and _is_derivable(origin):
        return True
    return change.key.family in _VALUES and _get_last_name(change) == _get_last_name(origin)


def _get_last_name(change: GuardChange) -> str:
    """`mask` of `kwargs['mask']`."""
    return change.key.path.names[-1]


def _is_derivable(change: GuardChange) -> bool:
    """True for a size, and for a plain local variable after a graph break, which can hold one that was computed before:
    attributes and globals have lives of their own.
    """
    path = change.key.path
    is_local = path.is_size or (not path.steps and path.root.isidentifier())
    return change.is_size or (is_local and is_resumed(change.key.function))


def _is_same_change(one: GuardChange, other: GuardChange) -> bool:
    is_of_layers = _is_alike(one, other, _is_of_layer) and _get_pair(one) == _get_pair(other)
    if is_of_layers or _is_alike(one, other, _is_of_group):
        return True
    if _get_last_name(one).endswith("training") and _get_last_name(other).endswith("training"):
        return _get_pair(one) == _get_pair(other)
    if one.key.family == other.key.family and one.key.family in _MODULE_PROPERTIES and _are_attributes(one, other):
        return _get_pair(one) == _get_pair(other)
    if _is_of_module(one) and _is_of_module(other):
        return True  # Another module ran: all of its parameters have other sizes.
    return one.numbers is not None and one.numbers == other.numbers


def _is_near(one: GuardChange, other: GuardChange) -> bool:
    """True for sizes of two tensors that differ by as little before and after, as `x` and `y[:, 1:]` do."""
    if not (one.is_size and other.is_size and one.numbers and other.numbers):
        return False
    if one.key.path.owner == other.key.path.owner:
        return False
    before, after = (left - right for left, right in zip(one.numbers, other.numbers, strict=True))
    return before == after and 0 < abs(before) <= _MAX_OFFSET


def _is_of_module(change: GuardChange) -> bool:
    """True for a size of a parameter of a module."""
    operands = parse_guard(change.row.reason or "").operands if change.is_size and _are_attributes(change) else ()
    return any(path.has_attribute("_parameters") for path in operands)


def _are_attributes(*changes: GuardChange) -> bool:
    return all(change.key.path.is_module_attribute for change in changes)


def _is_alike(one: GuardChange, other: GuardChange, is_meant: Callable[[tuple[Step, ...], Step | None], bool]) -> bool:
    """True if the names of two values differ in one kind of index only."""
    paths = [one.key.path, other.key.path]
    alike = [_replace_indices(change.key.source, is_meant) for change in (one, other)]
    return alike[0] == alike[1] and alike[0] not in paths


@cache_short(8192)
def _replace_indices(source: str, is_meant: Callable[[tuple[Step, ...], Step | None], bool]) -> Path:
    """The path of a source with `[*]` for each index that is meant. The pairs of many changes ask for few sources."""
    return Path.of(source).of_any_item(is_meant)


def _is_of_group(before: tuple[Step, ...], after: Step | None) -> bool:
    """True for the index of a group of an optimizer's parameters, or of one: a scheduler changes all of them."""
    in_state = (Step("attr", "state"), Step("method", "keys"), Step("function", "list"))
    return before[-1:] == (Step("attr", "param_groups"),) or before[-3:] == in_state


def _is_of_layer(before: tuple[Step, ...], after: Step | None) -> bool:
    """True for the index of a layer, as of a cache that is passed: what holds for one holds for all."""
    return before[-1:] == (Step("attr", "layers"),) and after is not None and after.kind in ("attr", "method")


def _get_pair(change: GuardChange) -> tuple[str | None, str | None]:
    return change.row.expected, change.row.actual


def _is_of_block_mask(change: GuardChange) -> bool:
    return _BLOCK_MASK in change.key.path.owner.names[:-1]


def _find_origins(change: GuardChange, known: Sequence[GuardChange]) -> Iterator[tuple[GuardChange, ...]]:
    """The changes that a size can be computed from, the most certain first: a multiple, a product, a small offset.

    Values of the same recompile are compared before those of earlier frames, whose entries can be others.
    """
    before, after = change.numbers or (0, 0)
    numbers = [one for one in known if one.numbers is not None and one.is_size and 0 not in one.numbers]
    latest = numbers[::-1]
    for one in latest:
        a, b = one.numbers or (1, 1)
        if before * b == after * a and (before % a == 0 or a % before == 0 if before else False):
            yield (one,)
    for one, other in combinations(latest, 2):
        (a, b), (c, d) = one.numbers or (1, 1), other.numbers or (1, 1)
        if one.key.source != other.key.source and before * b * d == after * a * c and before % (a * c) == 0:
            yield one, other
    for one in latest:
        a, b = one.numbers or (1, 1)
        if before - a == after - b and abs(before - a) <= _MAX_OFFSET:
            yield (one,)
