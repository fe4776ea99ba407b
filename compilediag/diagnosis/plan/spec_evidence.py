"""Which sizes and integers of a compiled function vary, and whether one specification of its arguments can name all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from ...decode.call_stacks import Frame, is_torch_file
from ...decode.calls import find_compiled_call
from ...decode.guards.guard_text import find_torch_source
from ...decode.guards.path import Path, format_expression, parse_path
from ...events import Compile, GuardFailure, Recompile, StackFrame, SymbolicShape
from ..causes.cause import INTEGER
from ..causes.value_facts import find_optional_stacks
from ..causes.value_uses import find_uses
from ..evidence import Evidence, Place, get_place, group_by, kept

_SIZES = re.compile(r"\bsize=\[([^\]]*)\]")
_EQUAL = re.compile(r"Eq\((\w+), (\w+)\)")
#: Uses of a number that do not depend on its value.
_CALCULATIONS = frozenset({"operand", "update"})
#: `module.compile()` compiles this method, which calls forward.
_IN_PLACE = "_call_impl"
_CALLED = "_wrapped_call_impl"


@dataclass(frozen=True)
class Slot:
    """A size or an integer of an argument: torch's name of the tensor or number, and the dimension of a size."""

    name: str
    dim: int | None = None


@dataclass(frozen=True)
class SpecEvidence:
    """What varies in a function that was passed to torch.compile.

    `groups` are the sizes and integers; torch found that those of one group have to be equal. `ranks` has the number of
    dimensions of each tensor. `frame` is the function itself; `is_in_place` is true for `module.compile()`.
    """

    place: Place
    frame: StackFrame
    groups: tuple[tuple[Slot, ...], ...]
    ranks: Mapping[str, int]
    is_in_place: bool = False

    @property
    def slots(self) -> frozenset[Slot]:
        return frozenset(slot for group in self.groups for slot in group)


class CannotSpecify(Exception):
    """What varies cannot be named by a specification, or must not be."""


@kept
def find_spec_evidence(evidence: Evidence) -> list[SpecEvidence]:
    """The functions whose varying sizes and integers a specification can name.

    It makes them unbacked, and all others static. So a function is left out if its code depends on one of the values,
    or if other functions are compiled inside of it, such as the code after a graph break: their inputs become static.
    """
    rows = [row for row in evidence.rows(Compile) if row.function and row.stack and row.trigger != "lazy_backward"]
    inside = {row.stack: _list_inside([*evidence.stacks.walk(row.stack)]) for row in rows}
    around = {_identify(_drop_torch(path)[0]) for path in inside.values() if len(_drop_torch(path)) > 1}
    found = []
    for place, own in group_by(rows, get_place).items():
        paths = [inside[row.stack] for row in own]
        if all(len(_drop_torch(path)) == 1 for path in paths) and _identify(paths[0][-1]) not in around:
            found.append(_find_varying(evidence, place, own, paths[0]))
    return [one for one in found if one is not None]


def _list_inside(stack: list[StackFrame]) -> list[StackFrame]:
    """The frames of a stack, given innermost first, inside of the outermost compiled call; none if it has none."""
    path = stack[::-1]
    compiled = find_compiled_call([Frame(row.file, row.line, row.function) for row in path])
    return [] if compiled is None else path[compiled + 1 :]


def _drop_torch(path: Sequence[StackFrame]) -> list[StackFrame]:
    return [row for row in path if not is_torch_file(row.file or "")]


def _identify(row: StackFrame) -> tuple[str | None, str | None]:
    return row.file, row.function


def _find_varying(
    evidence: Evidence, place: Place, compiles: Sequence[Compile], path: Sequence[StackFrame]
) -> SpecEvidence | None:
    """What varies in one function; None if a specification cannot name it."""
    keys = [row.compile_key for row in compiles]
    failures = [row for key in keys for row in evidence.by_compile(GuardFailure).get(key, ())]
    shapes = [evidence.by_compile(SymbolicShape).get(key, ()) for key in keys]
    if any(row.action == "created" for row in shapes[0]):
        return None  # Sizes are dynamic from the start: by marks, or by dynamic=True, which excludes a spec.
    try:
        failed, dynamic = set(_list_failed(failures)), set[Slot]()
        ties: list[tuple[Slot, Slot]] = []
        for own in shapes:
            symbols = _list_symbols(own)
            dynamic |= set(symbols.values())
            ties += _list_ties(own, symbols, find_optional_stacks(evidence))
        _check_uses(failed - dynamic, [row for key in keys for row in evidence.by_compile(Recompile).get(key, ())])
        ranks = _find_ranks(failed | dynamic, failures)
    except CannotSpecify:
        return None
    slots = sorted(failed | dynamic, key=lambda slot: (slot.name, slot.dim or 0))
    functions = [row.function for row in path]
    is_in_place = _IN_PLACE in functions and _CALLED not in functions
    return SpecEvidence(place, path[-1], _join(slots, ties), ranks, is_in_place) if slots else None


def _list_failed(failures: Iterable[GuardFailure]) -> Iterator[Slot]:
    """The sizes and integers of arguments that guards compared with another value."""
    for row in failures:
        is_number = row.guard_kind == "value" and _are_integers(row.expected, row.actual)
        if row.guard_kind == "tensor_size" or is_number:
            name = find_torch_source(row.guard_source or "", row.guard)
            yield _make_slot(name, Path.of(row.guard_source or "").dim)


def _are_integers(*values: str | None) -> bool:
    return all(INTEGER.fullmatch(value or "") for value in values)


def _make_slot(name: str | None, dim: int | None) -> Slot:
    path = parse_path(name or "")
    if name is None or path is None or path.scope != "L" or path.torch_name is None:
        raise CannotSpecify(name)
    return Slot(name, dim)


def _list_symbols(shapes: Iterable[SymbolicShape]) -> dict[str, Slot]:
    """Symbol -> what it stands for, of one compile."""
    found = {}
    for row in shapes:
        if row.action == "created" and row.symbol and _are_integers(row.value):
            path = parse_path(row.source or "")
            if path is None or path.tensor_property not in (None, "size"):
                raise CannotSpecify(row.source)
            found[row.symbol] = _make_slot(path.owner.torch_name, path.dim)
    return found


def _list_ties(
    shapes: Iterable[SymbolicShape], symbols: Mapping[str, Slot], optional: Set[str | None]
) -> Iterator[tuple[Slot, Slot]]:
    """The pairs that have to be equal. CannotSpecify if the code depends on a value in another way."""
    for row in shapes:
        if row.action == "specialized":
            raise CannotSpecify(row.source)
        if row.action == "guarded":
            equal = _EQUAL.fullmatch(row.expression or "")
            if equal is not None and {equal[1], equal[2]} <= symbols.keys():
                yield symbols[equal[1]], symbols[equal[2]]
            elif row.torch_stack not in optional:
                raise CannotSpecify(row.expression)


def _check_uses(slots: Iterable[Slot], recompiles: Sequence[Recompile]) -> None:
    """CannotSpecify unless each value that never was dynamic is a number that its line only calculates with."""
    for slot in slots:
        rows = [row for row in recompiles if _is_about(row, slot)]
        uses = [find_uses(row.user_code, format_expression(row.guard_source or "")) for row in rows]
        if slot.dim is not None or not uses or not all(use and use <= _CALCULATIONS for use in uses):
            raise CannotSpecify(slot.name)


def _is_about(row: Recompile, slot: Slot) -> bool:
    return bool(row.guard_source) and find_torch_source(row.guard_source or "", row.reason) == slot.name


def _find_ranks(slots: Iterable[Slot], failures: Iterable[GuardFailure]) -> dict[str, int]:
    """The number of dimensions of each tensor among the slots. CannotSpecify if one is not known, or not constant."""
    tensors = {slot.name for slot in slots if slot.dim is not None}
    ranks: dict[str, set[int]] = {name: set() for name in tensors}
    for row in failures:
        name = find_torch_source(Path.of(row.guard_source or "").owner.text, row.guard) or ""
        if name in ranks and row.guard_kind in ("type", "value", "tensor_rank"):
            raise CannotSpecify(name)
        sizes = _SIZES.search(row.guard or "")
        if name in ranks and sizes:
            ranks[name].add(len([size for size in sizes[1].split(",") if size.strip()]))
    if any(len(found) != 1 for found in ranks.values()):
        raise CannotSpecify(ranks)
    return {name: found.pop() for name, found in ranks.items()}


def _join(slots: Sequence[Slot], ties: Iterable[tuple[Slot, Slot]]) -> tuple[tuple[Slot, ...], ...]:
    """The slots in groups that have to be equal, in the order of the slots."""
    group = {slot: {slot} for slot in slots}
    for one, other in ties:
        joined = group[one] | group[other]
        group.update(dict.fromkeys(joined, joined))
    found = dict.fromkeys(tuple(slot for slot in slots if slot in group[first]) for first in slots)
    return tuple(found)
