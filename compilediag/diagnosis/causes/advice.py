"""What to do about a cause, and the parts that the advice of several kinds of guards shares."""

from __future__ import annotations

from dataclasses import dataclass

from ...events import Recompile
from ...formatting import format_change, format_expression, format_line
from ..change import CodeChange
from ..evidence import get_place, group_by
from ..settings import Settings
from .cause import EVALUATED, NUMBER, ZERO_ONE, Cause
from .edits import get_user_value, replace_argument
from .source_paths import find_listed, is_size, normalize_source, split_property

#: Undoes dynamic=False: torch then makes a number dynamic after its first change, which still recompiles.
DYNAMIC_BY_DEFAULT = "Compile with dynamic=None."
#: From so many seconds on, a recompile that is expected to happen once is worth a look all the same.
EXPENSIVE_S = 5.0
#: The first version of torch in which torch.compile has `isolate_recompiles`.
ISOLATION_SINCE = (2, 13)


@dataclass(frozen=True)
class Advice:
    """What a rule says about a cause.

    `action` is what to do, as code where there is code, and `explanation` says why; each is one or more sentences.
    `changes` are the ways to follow it, the preferred one first. `ceiling` is the worst severity that the finding can
    have. `what_changed` replaces "source was a, then b" in the title. With `is_expected` every compiled version is
    needed, and no change of the program that keeps what it computes removes one. `has_recipe`: the library offers what
    `action` says, and it removes the recompiles.
    """

    rule: str
    action: str
    explanation: str = ""
    changes: tuple[CodeChange, ...] = ()
    ceiling: str = "high"
    what_changed: str | None = None
    is_expected: bool = False
    has_recipe: bool = False

    @property
    def fix(self) -> Settings | None:
        """The settings of the first change that needs no edit; None if all do."""
        return next((change.settings for change in self.changes if change.settings and not change.edits), None)

    @property
    def suggestion(self) -> str:
        return " ".join(filter(None, (self.action, self.explanation)))


def describe_change(cause: Cause) -> str:
    """What changed, for the title: `x.size(0) was 4, then 6`."""
    return f"{cause.name or 'the guarded value'} {format_change(cause.values)}"


def get_name(cause: Cause, fallback: str = "the argument") -> str:
    """The guarded value without its tensor property, as the user's code names it, or `fallback`."""
    return get_user_value(cause) or format_expression(split_property(cause.source)[0]) or fallback


def format_user_line(cause: Cause) -> str:
    """` (model.py:31: y = x + k)`: what is known of the user's line that made the guard; "" if nothing is."""
    code, where = format_line(cause.user_code or "", 80), cause.user_place_text
    if not where:
        return ""
    return f" ({where}: {code})" if code else f" ({where})"


def get_usual_ceiling(cause: Cause, repeated: str = "high") -> str:
    """The ceiling of a change that is expected to happen once: low, or medium where that once took long.

    `repeated` is the ceiling where it happened more than once in a function.
    """
    if cause.max_per_function > 1:
        return repeated
    return "medium" if cause.seconds >= EXPENSIVE_S else "low"


def list_changes(*ways: Settings | CodeChange | str | None) -> tuple[CodeChange, ...]:
    """The ways to follow an advice: settings, changes of the code, or a text for what no program can change."""
    return tuple(_make_change(way) for way in ways if way)


def _make_change(way: Settings | CodeChange | str) -> CodeChange:
    if isinstance(way, CodeChange):
        return way
    return CodeChange(text=way) if isinstance(way, str) else CodeChange(settings=way)


def edit_argument(cause: Cause, form: str) -> CodeChange | None:
    """Another argument in the user's call, as a change; None if there is no such edit."""
    edits = replace_argument(cause, form)
    return CodeChange(edits=edits) if edits else None


def make_dynamic_fix(cause: Cause, setting: str = "dynamic_sources") -> Settings | None:
    """`dynamic_sources` for the value and for the sizes that changed with it; None if torch's names are not certain."""
    names = cause.torch_sources
    return {setting: ",".join(dict.fromkeys((*names, *cause.also_named)))} if names else None


def write_isolation(cause: Cause) -> str:
    """How several compiled objects of one code keep their entries apart; "" if this version of torch cannot."""
    if cause.facts.torch_version < ISOLATION_SINCE:
        return ""
    return (
        "If each has to be compiled for itself, give it its own entries, torch.compile(..., isolate_recompiles=True): "
        "they no longer count towards one recompile limit."
    )


def is_usual(cause: Cause) -> bool:
    """True if torch needs these recompiles by default: the first change of a number, and sizes 0 and 1 on their own.

    More of them show that the value did not become dynamic after its first change.
    """
    rows = cause.seen or cause.recompiles
    by_value = group_by(rows, lambda row: (get_place(row), row.region, normalize_source(row.guard_source or "")))
    return all(_are_usual(found, is_size(cause.source)) for found in by_value.values())


def _are_usual(rows: list[Recompile], are_sizes: bool) -> bool:
    values = [rows[0].expected, *(row.actual for row in rows)]
    return len(rows) <= count_usual([value for value in values if value is not None], are_sizes)


def list_static_reasons(*more: str) -> str:
    """What can keep a number static that changes, as a list in words; `more` are reasons of one kind of number."""
    reasons = [
        "the function is probably compiled with dynamic=False (dynamic=None is enough)",
        "torch._dynamo.config.automatic_dynamic_shapes is False",
        *more,
    ]
    return f"{', '.join(reasons[:-1])}, or {reasons[-1]}"


def count_usual(values: list[str], are_sizes: bool = True) -> int:
    """How many recompiles these values take by default: one for the first change, and one for each size of 0 and 1."""
    if not are_sizes:
        return int(len(set(values)) > 1)
    special = {value for value in values[1:] if value in ZERO_ONE} - set(values[:1])
    return len(special) + any(value not in ZERO_ONE for value in values[1:])


def is_specialized(cause: Cause) -> bool:
    """True if code needed the number itself, so that an entry is valid for one value even if it is dynamic."""
    if cause.facts.value_need is not None and cause.facts.value_need.value not in ZERO_ONE:
        return True
    return cause.is_still_static or _needs_number(cause)


def _needs_number(cause: Cause) -> bool:
    """True if torch reports that code evaluated the number while it was compiled."""
    return any(NUMBER.fullmatch(row.expected or "") and EVALUATED in (row.reason or "") for row in cause.recompiles)


def is_branch(cause: Cause) -> bool:
    """True if code compared the number, so that an entry is valid for a range of values."""
    if len(cause.facts.exclusions) >= len(cause.seen or cause.recompiles):
        return True
    return any(not NUMBER.fullmatch(bound) and bound != ">= 2" for bound in cause.bounds)


def advise_branch(cause: Cause) -> Advice:
    """A size or number that decides which branch the code takes."""
    source = format_expression(cause.source)
    if cause.bounds:
        bound, line = format_expression(cause.bounds[0]), format_user_line(cause)
        condition = bound if cause.source and cause.source in cause.bounds[0] else f"{source} {bound}".strip()
        holds = f"The closest entry is valid only for {condition}; beyond it the code takes another branch{line}."
    else:
        need = cause.facts.exclusions[0]
        condition = format_expression(need.condition or source)
        where = f" ({need.place_text})" if need.place_text else ""
        holds = f"The new entry is valid only for {condition}{where}, so it cannot replace the earlier one."
    return Advice(
        "branch",
        "Keep it on one side of the condition, or move the branch out of the compiled function.",
        f"{holds} One compiled version per branch is expected.",
        ceiling=get_usual_ceiling(cause),
        what_changed=None if cause.values else f"{condition} no longer holds",
        is_expected=True,
    )


def advise_static_source(cause: Cause) -> Advice | None:
    """A size or number that torch.compiler.config.static_sources keeps static; None if the setting does not name it."""
    dim = split_property(cause.source)[2]
    setting = cause.facts.static_sources
    entry = next(filter(None, (find_listed(setting, name, dim) for name in cause.torch_sources)), None)
    if entry is None:
        return None
    way = f'Remove "{entry}" from torch.compiler.config.static_sources, or keep the value to few values.'
    return Advice(
        "specialized",
        way,
        f"The setting keeps {format_expression(cause.source)} static, so each of its values is compiled on its own, "
        "and dynamic_sources and dynamic=True have no effect on it.",
        list_changes(way),
        get_usual_ceiling(cause),
    )


def advise_specialized(cause: Cause) -> Advice:
    """A size or number that is compiled in because a line of the code needs it."""
    need, source = cause.facts.value_need, format_expression(cause.source)
    if need is None and not _needs_number(cause):
        return _advise_kept_static(cause, source)
    where = (f" ({need.place_text})" if need.place_text else "") if need is not None else format_user_line(cause)
    return Advice(
        "specialized",
        "Keep it to few values (padding, bucketing), or use tensor operations instead of a Python loop, range or list "
        "made from it.",
        f"A line of the code{where} needs one value of {source}: a Python loop, a list, or a tensor of a fixed size. "
        "Each value is compiled on its own, and marking it dynamic has no effect.",
        ceiling=get_usual_ceiling(cause),
    )


def _advise_kept_static(cause: Cause, source: str) -> Advice:
    """A size that torch made dynamic when it changed, and that is one number in the next entry all the same."""
    way = (
        "Remove torch._dynamo.mark_static if the program marks it; otherwise keep it to few values (padding, "
        "bucketing), or use tensor operations instead of a Python loop, range or list made from it."
    )
    return Advice(
        "specialized",
        way,
        f"{source} stayed static after it had changed: it is marked with torch._dynamo.mark_static, or a line of the "
        "code needs one value of it. Each value is compiled on its own, and marking it dynamic has no effect.",
        list_changes(way),
        get_usual_ceiling(cause),
    )
