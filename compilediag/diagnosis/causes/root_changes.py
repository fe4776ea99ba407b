"""Find the guards whose change is the user's own, and those that only follow: in other frames, of derived sizes.

A size is seen under many names while one call runs: as an argument of each frame, as the size of what is computed from
it, multiplied by another size, as a number after a graph break. Only the first is a root.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from ...events import Recompile
from ...formatting import is_resumed
from ..evidence import Place, group_by
from ..recipes import RECIPES
from .guard_changes import CauseKey, GuardChange, is_local_number
from .source_paths import split_property

Names = Callable[[Recompile], str | None]
Positions = Callable[[Recompile], int | None]
#: Changes that a derived one is compared with, the latest ones: products try each pair.
_MAX_KNOWN = 48
#: A size that differs by so little from another one, by the same before and after, is derived from it: labels[:, 1:].
_MAX_OFFSET = 2
_TENSOR_PROPERTIES = ("tensor_dtype", "tensor_device", "tensor_rank", "requires_grad")
#: What all tensors of a module get at once: model.half(), model.to(device), model.requires_grad_(False).
_MODULE_PROPERTIES = ("tensor_dtype", "tensor_device", "requires_grad")
#: torch's own name of a parameter of a module.
_MODULE_PARAMETER = "._parameters["
#: Values that only the name connects: many flags go from True to False.
_VALUES = ("value", "type", "length")
#: What an optimizer has for each group of parameters, and for each parameter: a scheduler changes all of them.
_GROUP = re.compile(r"(?<=\.param_groups)\[\d+\]|(?<=\.state\.keys\(\)\))\[\d+\]")
#: Guards that fail when something appears.
_PRESENCE = ("dict_keys", "value", "type", "hasattr")
#: One layer of a cache that is passed: what holds for one holds for all.
_LAYER = re.compile(r"(?<=\.layers)\[\d+\](?=\.)")
#: What flex_attention's mask has for a length: the length, and numbers of blocks.
_BLOCK_MASK = re.compile(r"\bblock_mask\.")
_WORD = re.compile(r"[A-Za-z_]\w*")


class At(NamedTuple):
    """A guard at one recompile."""

    key: CauseKey
    event_id: int | None


class RootChanges:
    """Which changes explain which. Recompiles are added in the order of their time.

    `names` gives the name of a value at the user's line, and `positions` where that call has it.
    """

    def __init__(self, names: Names, positions: Positions = lambda row: None):
        self._names, self._positions = names, positions
        self._changes: dict[CauseKey, list[GuardChange]] = {}
        self._parents: dict[At, tuple[At, ...]] = {}
        self._equal: set[At] = set()
        self._peers: Counter[tuple[CauseKey, CauseKey]] = Counter()
        #: Peers that differ by as little before and after.
        self._near: set[frozenset[CauseKey]] = set()
        self._named: dict[str, CauseKey] = {}
        #: What a guard was equal to, or computed from, at an earlier call.
        self._carried: dict[CauseKey, At] = {}
        self._origins: dict[CauseKey, list[At]] = {}
        self._roots: dict[At, tuple[CauseKey, ...]] = {}
        self._explained: dict[CauseKey, bool] = {}

    def add(self, changes: Sequence[GuardChange], earlier: Sequence[GuardChange]) -> None:
        """Take the changes of one recompile, and those of earlier recompiles in the same call."""
        for change in changes:
            self._changes.setdefault(change.key, []).append(change)
        upstream = [one for one in earlier if one.key.place != changes[0].key.place][-_MAX_KNOWN:]
        rooted = [change for change in changes if self._explain_equal(change, upstream)]
        known = [*upstream, *rooted]
        for change in changes:
            if not any(change is one for one in rooted) and upstream:
                self._explain_derived(change, known)
        self._explain_block_mask(changes)
        self._explain_relation(changes)
        self._explain_by_layers(changes)
        self._explain_by_recipes(changes)
        self._count_peers(changes)

    def _explain_equal(self, change: GuardChange, upstream: Sequence[GuardChange]) -> bool:
        """Explain a change by one of the same values in an earlier frame of the call. True if its origin is known."""
        name = self._name(change)
        first = self._named.setdefault(name, change.key) if name is not None else change.key
        same = [one for one in upstream if _can_carry(change, one)]
        if first != change.key:
            self._set_parents(change, [At(first, self._changes[first][-1].event_id)], is_equal=True)
        elif same:
            self._set_parents(change, [At(same[0].key, same[0].event_id)], is_equal=True)
        elif name is None and change.key in self._carried:
            self._set_parents(change, [self._carried[change.key]], is_equal=True)
        else:
            return name is not None
        self._carried.setdefault(change.key, self._parents[At(change.key, change.event_id)][0])
        return True

    def _name(self, change: GuardChange) -> str | None:
        """What the user's code calls the value, and the kind of its guard."""
        name = self._names(change.row)
        return None if name is None else f"{change.key.family}:{name}"

    def _explain_derived(self, change: GuardChange, known: Sequence[GuardChange]) -> None:
        if change.numbers is None or not _is_derivable(change):
            return
        found = next(_find_origins(change, known), ())
        origins = [At(one.key, one.event_id) for one in found] or self._origins.get(change.key, [])
        if origins:
            self._origins[change.key] = origins
            self._set_parents(change, origins, is_equal=False)

    def _explain_block_mask(self, changes: Sequence[GuardChange]) -> None:
        """A block mask is made for the length of the tensors that it is passed with; its sizes 0 and 1 are special."""
        lengths = [At(one.key, one.event_id) for one in changes if one.is_size and not _is_of_block_mask(one)]
        for change in changes:
            if _is_of_block_mask(change) and change.numbers is not None and not {0, 1} & {*change.numbers}:
                self._set_parents(change, lengths[:1], is_equal=False)

    def _explain_relation(self, changes: Sequence[GuardChange]) -> None:
        """A relation between sizes fails because of the sizes that changed with it."""
        sizes = [At(one.key, one.event_id) for one in changes if one.is_size]
        for change in changes:
            if change.is_relation and sizes:
                self._set_parents(change, sizes, is_equal=False)

    def _explain_by_layers(self, changes: Sequence[GuardChange]) -> None:
        """An attribute that all layers have, which one line reads, is set in all of them at once."""
        values = [one for one in changes if one.key.family in _VALUES and _are_attributes(one) and one.row.user_line]
        for layers in group_by(values, _get_attribute_change).values():
            leader = At(layers[0].key, layers[0].event_id)
            for change in layers[1:]:
                self._set_parents(change, [leader], is_equal=True)

    def _explain_by_recipes(self, changes: Sequence[GuardChange]) -> None:
        """What a library changes at once is known from its recipe."""
        for recipe in RECIPES:
            leaders = [one for one in changes if recipe.follows and re.search(recipe.source, one.key.source)]
            if leaders and recipe.is_of(changes[0].key.file):
                leader = min(leaders, key=lambda one: len(one.key.source))
                for change in changes:
                    if re.search(recipe.follows, change.key.source):
                        self._set_parents(change, [At(leader.key, leader.event_id)], is_equal=False)

    def _set_parents(self, change: GuardChange, parents: Iterable[At], is_equal: bool) -> None:
        own = At(change.key, change.event_id)
        found = tuple(parent for parent in parents if parent.key != own.key)
        if found:
            self._parents[own] = found
        if found and is_equal:
            self._equal.add(own)

    def _count_peers(self, changes: Sequence[GuardChange]) -> None:
        """Count how often two guards of one recompile changed in the same way."""
        for one, other in combinations(changes[:_MAX_KNOWN], 2):
            is_near = _is_near(one, other)
            if is_near or _is_same_change(one, other):
                self._peers[one.key, other.key] += 1
            if is_near:
                self._near.add(frozenset((one.key, other.key)))

    def join_peers(self) -> None:
        """Join guards of one function that changed in the same way each time, after all recompiles were added."""
        order = {key: self._rank(changes[0], at) for at, (key, changes) in enumerate(self._changes.items())}
        named = {key: _count_named(changes) for key, changes in self._changes.items()}
        absent = {(key.place, key.source) for key in self._changes if key.family in _PRESENCE}
        for pair, count in sorted(self._peers.items(), key=lambda item: sorted(order[key] for key in item[0])):
            first, second = sorted(pair, key=order.__getitem__)
            if _is_sometimes_absent(first, absent):
                first, second = second, first
            whole = named[first] <= count or _is_sometimes_absent(second, absent)
            if whole and len(self._changes[second]) == count and self._can_join(first, second, count):
                self._join(first, second)

    def _rank(self, change: GuardChange, number: int) -> tuple[bool, bool, bool, int, int]:
        """Sorts guards: those on parameters, which only another module has, then sizes as the user's call names them,
        and numbers as the code reads them.
        """
        position = self._positions(change.row) if change.is_size else change.row.user_line
        return not _is_of_module(change), not change.is_size, position is None, position or 0, number

    def _join(self, first: CauseKey, second: CauseKey) -> None:
        known = {change.event_id: change for change in self._changes[first]}
        for change in self._changes[second]:
            if At(second, change.event_id) not in self._parents:
                origin = known.get(change.event_id)
                is_equal = origin is None or change.numbers is None or change.numbers == origin.numbers
                self._set_parents(change, [At(first, change.event_id)], is_equal=is_equal)

    def _can_join(self, first: CauseKey, second: CauseKey, count: int) -> bool:
        """A number that is equal to a size once can be a coincidence, and so can two sizes that differ by as much."""
        if frozenset((first, second)) in self._near:
            return count > 1
        return first.family == second.family or (count > 1 and not {first.source[:5], second.source[:5]} & {"self."})

    def find_roots(self, change: GuardChange) -> tuple[CauseKey, ...]:
        """The roots of a change: itself, or what it follows from each time that it occurs."""
        return self._find_roots(At(change.key, change.event_id), frozenset())

    def _find_roots(self, at: At, visited: frozenset[At]) -> tuple[CauseKey, ...]:
        if at not in self._roots:
            parents = () if at in visited or not self._is_explained(at.key) else self._parents.get(at, ())
            found = [root for parent in parents for root in self._find_roots(parent, visited | {at})]
            self._roots[at] = tuple(dict.fromkeys(found)) or (at.key,)
        return self._roots[at]

    def _is_explained(self, key: CauseKey) -> bool:
        """True if every change of the guard follows from another one. Asked when all parents are known."""
        known = self._explained.get(key)
        if known is None:
            known = all(At(key, change.event_id) in self._parents for change in self._changes[key])
            self._explained[key] = known
        return known

    def is_equal(self, change: GuardChange) -> bool:
        """True if a change has the values of its root, or is the root."""
        at, visited = At(change.key, change.event_id), set[At]()
        while at not in visited and self._is_explained(at.key) and at in self._parents:
            visited.add(at)
            if at not in self._equal:
                return False
            at = self._parents[at][0]
        return True


def _count_named(changes: Sequence[GuardChange]) -> int:
    """How often a guard changed; where it is a bound on a symbol, torch names one of the sizes that have it."""
    return sum(change.row.guard_kind != "symbolic_shape" for change in changes)


def _is_sometimes_absent(key: CauseKey, absent: Container[tuple[Place, str]]) -> bool:
    """True for a size of a tensor that is missing or None at some calls, so that it cannot change at each.

    `absent` are the values that were missing, each with its function.
    """
    return key.family == "tensor_size" and (key.place, split_property(key.source)[0]) in absent


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
    words: list[str] = _WORD.findall(change.key.source)
    return words[-1] if words else ""


def _get_attribute_change(change: GuardChange) -> tuple[object, ...]:
    """What the same change of the same attribute of several modules has in common."""
    row = change.row
    return change.key.family, _get_last_name(change), row.user_file, row.user_line, row.expected, row.actual


def _is_derivable(change: GuardChange) -> bool:
    """True for a size, and for a local number after a graph break: attributes and globals have lives of their own."""
    return change.is_size or (is_resumed(change.key.function) and is_local_number(change.key.source))


def _is_same_change(one: GuardChange, other: GuardChange) -> bool:
    if _is_alike(one, other, _GROUP) or (_is_alike(one, other, _LAYER) and _get_pair(one) == _get_pair(other)):
        return True
    if one.key.source.endswith("training") and other.key.source.endswith("training"):
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
    if split_property(one.key.source)[0] == split_property(other.key.source)[0]:
        return False
    before, after = (left - right for left, right in zip(one.numbers, other.numbers, strict=True))
    return before == after and 0 < abs(before) <= _MAX_OFFSET


def _is_of_module(change: GuardChange) -> bool:
    """True for a size of a parameter of a module."""
    return change.is_size and _MODULE_PARAMETER in (change.row.reason or "") and _are_attributes(change)


def _are_attributes(*changes: GuardChange) -> bool:
    return all(change.key.source.startswith("self.") for change in changes)


def _is_alike(one: GuardChange, other: GuardChange, index: re.Pattern[str]) -> bool:
    """True if the names of two values differ in one kind of index only."""
    sources = one.key.source, other.key.source
    return all(map(index.search, sources)) and len({index.sub("[*]", source) for source in sources}) == 1


def _get_pair(change: GuardChange) -> tuple[str | None, str | None]:
    return change.row.expected, change.row.actual


def _is_of_block_mask(change: GuardChange) -> bool:
    return _BLOCK_MASK.search(change.key.source) is not None


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
