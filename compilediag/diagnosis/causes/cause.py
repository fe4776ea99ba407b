"""A root cause: the recompiles that one changing value caused, and what they show about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from ...decode.calls import find_result_name
from ...decode.guards.guard_text import find_torch_source
from ...decode.guards.path import Path, Step, format_expression, list_sources
from ...events import Recompile
from ...formatting import format_function, format_place
from ..change import CallSite
from ..evidence import Place, find_first, get_ids, get_place, sum_seconds
from .call_sites import UserNames
from .value_facts import ValueFacts

T = TypeVar("T")

#: Kinds of guards on modes of the whole program: where they recompile is no part of the cause.
MODES = ("global_state", "default_device", "mode_stack")
#: The sizes that torch always compiles on their own.
ZERO_ONE = frozenset({"0", "1"})
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_WHOLE = re.compile(r"-?\d{1,40}")
_FLOAT = re.compile(r"-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf)|nan", re.IGNORECASE)
#: torch's mark on the guard of a symbol that Python code needed as a number.
EVALUATED = "in evaluate_expr"


def get_kind(guard_kind: str | None) -> str:
    """The kind of a guard; "other" where it is not known."""
    return guard_kind or "other"


def get_family(kind: str, source: str) -> str:
    """The kind under which guards are grouped: a value's guard before and after it became dynamic is one family."""
    if kind != "symbolic_shape" or len(list_sources(source)) > 1:
        return kind
    return "tensor_size" if Path.of(source).is_size else "value"


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


def get_moment(row: Recompile) -> tuple[int, int]:
    """Sorts recompiles by their time."""
    return row.time_ns, row.event_id or 0


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
        bounds = (row.expected or "" for row in self.recompiles if row.guard_kind == "symbolic_shape")
        return list_unique(code for bound in bounds if (code := bound.partition("  # ")[0].strip()))

    @cached_property
    def torch_sources(self) -> tuple[str, ...]:
        """torch's names of the value, one for each instance of a module; empty if one of them is not certain."""
        names: dict[str, str | None] = {}
        for source, reason in list_unique((row.guard_source, row.reason) for row in self.recompiles):
            if source:
                names[source] = names.get(source) or find_torch_source(source, reason)
        found = list_unique(name for name in names.values() if name is not None)
        return () if None in names.values() else found

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
