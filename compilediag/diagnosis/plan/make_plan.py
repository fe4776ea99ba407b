"""Make the plan of a session: which causes can be changed, what each change saves, in which order."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...decode.guards.path import format_expression, name_any_instance
from ...events import Compile, GuardFailure, Recompile
from ...formatting import format_amount, format_change, format_function, format_names, format_place, format_seconds
from ...json_document import to_plain
from ..causes.cause import ZERO_ONE, Cause, find_causes, get_value_type, list_unique
from ..causes.root_changes import get_moment, list_failures
from ..causes.value_facts import FactIndex, index_facts
from ..change import BEGIN, CodeChange, Edit, Settings, merge_settings, place_settings
from ..evidence import Evidence, Place, get_ids, get_place, group_by, is_timed, kept_after, sum_seconds
from ..rule import Advice, format_user_line, get_name
from ..rules.costs import find_compile_costs
from ..rules.coverage import find_gaps
from ..rules.failures import COMPILE_FAILED, find_failures
from ..rules.guards_on_numbers import DYNAMIC_BY_DEFAULT, is_branch, is_counter, list_crossings
from ..rules.recompiles import advise, find_recompiles, find_side_effects
from .plan import Outcome, Plan, PlanStep, SearchOutcome, UnresolvedCause, is_outdated, read_stored
from .specs import SPEC_SINCE, DynamicSpec, find_specs

#: In place of a cause: nothing saves the recompile.
_KEPT = -1
_FIRST_ONLY = (
    "Only the first failing guard of each recompile was collected, so a recompile can have more causes than are shown."
)
_AFTER_LIMIT = (
    "After a limit torch ran {} eagerly. What those calls would have compiled was not recorded, so more compiles can "
    "remain than the plan says."
)
#: torch's name of a value that a graph break hands over to the code after it.
_HANDED_OVER = re.compile(r"\b___stack\d+\b")
NOT_ALWAYS = "Recompiles were not collected all the time, so there may be more."


def _list_gaps(evidence: Evidence, is_collected: bool) -> list[str]:
    """What the plan of some recompiles does not cover."""
    limited = list_unique(format_function(*get_place(row)) for row in evidence.rows(Compile) if row.limit is not None)
    return [
        *([] if evidence.rows(GuardFailure) else [_FIRST_ONLY]),
        *([] if is_collected else [NOT_ALWAYS]),
        *([_AFTER_LIMIT.format(format_names(limited))] if limited else []),
    ]


def _list_failures(evidence: Evidence) -> list[str]:
    """The compiles that failed: no change of the plan is about them, and the program may not run on."""
    titles = list_unique(finding.title for finding in find_failures(evidence) if finding.rule == COMPILE_FAILED)
    return [f"{title.rstrip('.')}. A finding says what to do." for title in titles]


def _explain_names(settings: Settings) -> list[str]:
    """What torch's names in a setting mean that are in no program."""
    names = dict.fromkeys(name for value in settings.values() for name in _HANDED_OVER.findall(str(value)))
    if not names:
        return []
    is_one = len(names) == 1
    what = "torch's name of a value" if is_one else "torch's names of values"
    return [f"{_list_code([*names])} {'is' if is_one else 'are'} {what} from before a graph break."]


def find_blockers(recompiles: Sequence[Recompile], candidates: Sequence[Candidate]) -> dict[Recompile, Blockers]:
    """Each recompile with what keeps it: the candidates whose guards failed at it, by their numbers."""
    found: dict[int | None, set[int]] = defaultdict(set)
    for number, candidate in enumerate(candidates):
        for row in candidate.rows:
            found[row.event_id].add(number)
        for event in candidate.kept:
            found[event].add(_KEPT)
    return {row: frozenset(found[row.event_id]) for row in recompiles}


def use_earlier_entries(
    blockers: Mapping[Recompile, Blockers], candidates: Sequence[Candidate], facts: FactIndex
) -> dict[Recompile, Blockers]:
    """The blockers; for a recompile that stays, those of an entry before the closest one, if that can serve it."""
    by_value: dict[tuple[Place, str], int] = {}
    for number, candidate in enumerate(candidates):
        for cause in candidate.causes if candidate.changes else ():
            names = cause.source, *(name for _, name in cause.members.guards)
            by_value |= {(place, name): number for place in cause.places for name in names}
    found = dict(blockers)
    for row, causes in blockers.items():
        if all(number != _KEPT and candidates[number].changes for number in causes):
            continue
        numbers = {by_value.get((get_place(row), name)) for name in facts.find_earlier_entry(row)}
        if numbers and None not in numbers:
            found[row] = frozenset(number for number in numbers if number is not None)
    return found


def _list_unresolved(
    selection: Selection, candidates: Sequence[Candidate], blockers: dict[Recompile, Blockers]
) -> tuple[UnresolvedCause, ...]:
    """What keeps the recompiles that no step saves: causes without a change, and what fails together with them."""
    saved = set(selection.saved[-1]) if selection.saved else set()
    effects = find_side_effects([pair for one in candidates for pair in zip(one.causes, one.advice, strict=True)])
    found = []
    for number, candidate in enumerate(candidates):
        rows = [row for row, causes in blockers.items() if number in causes and row not in saved]
        is_kept = number not in selection.chosen or any(row.event_id in candidate.kept for row in rows)
        if rows and is_kept and not effects.issuperset(map(id, candidate.causes)):
            reason = _explain_unresolved(number, candidates, {row.event_id: blockers[row] for row in rows})
            place = candidate.causes[0].user_place
            found.append(UnresolvedCause(describe_what(candidate), reason, place, get_ids(rows)))
    return tuple(found)


def _explain_unresolved(number: int, candidates: Sequence[Candidate], blockers: Mapping[int | None, Blockers]) -> str:
    candidate = candidates[number]
    if not candidate.changes:
        advice = candidate.advice[0]
        return " ".join(filter(None, (advice.action, advice.explanation)))
    reasons = dict.fromkeys(reason for event, reason in candidate.kept.items() if event in blockers)
    others = {
        other for causes in blockers.values() for other in causes - {number, _KEPT} if not candidates[other].changes
    }
    if reasons or not others:
        return "; ".join(reasons) or "changing it saves nothing: torch compiles what fails at the same calls on its own"
    names = _list_code([candidates[other].name for other in sorted(others)])
    calls = "the same call" if len(blockers) == 1 else "the same calls"
    return f"changing it saves nothing: {names} failed at {calls}, and no change resolves that"


# Candidates: causes that one change resolves together, and the recompiles that each keeps alive

#: Settings that make numbers dynamic.
_DYNAMIC_SETTINGS = frozenset({"dynamic_sources", "allow_unspec_int_on_nn_module"})
_MARK = "mark_dynamic("
_FAILED = "torch failed to compile the version in which it varies"
#: Guards that making a value dynamic removes.
_OF_NUMBERS = ("tensor_size", "value", "symbolic_shape")
#: Part of a change that does something by itself: a setting's item, or a line at a place.
Atom = tuple[object, ...]


@dataclass(frozen=True)
class Candidate:
    """Causes that one change resolves.

    `changes` are the ways to do that, the preferred one first; none for a single cause that nothing resolves.
    `kept` has the recompiles that stay although the first of them is made, by their event ids, with the reason.
    `shapes` are the shapes that a tensor had, if the causes are its sizes.
    """

    causes: tuple[Cause, ...]
    advice: tuple[Advice, ...]
    changes: tuple[CodeChange, ...]
    kept: Mapping[int | None, str] = field(default_factory=dict)
    shapes: tuple[str, ...] = ()

    @property
    def change(self) -> CodeChange | None:
        return self.changes[0] if self.changes else None

    @property
    def is_certain(self) -> bool:
        """True if it is proven that the change removes the guards."""
        return all(advice.is_certain for advice in self.advice)

    @property
    def name(self) -> str:
        """What varies, in the user's names where they are known."""
        names = (cause.name or cause.kind for cause in self.causes)
        return ", ".join(dict.fromkeys(names))

    @property
    def rows(self) -> tuple[Recompile, ...]:
        """The recompiles that stay as long as these causes do."""
        rows = {row.event_id: row for cause in self.causes for row in cause.failed}
        return tuple(rows.values())


@kept_after(find_causes, index_facts)
def list_candidates(evidence: Evidence) -> list[Candidate]:
    """The causes of a session with what changes them; those that one change resolves are one candidate."""
    found: list[Candidate] = []
    for cause in find_causes(evidence):
        own = _make_candidate(evidence, cause, index_facts(evidence))
        place = next((at for at, other in enumerate(found) if _is_one_change(own, other)), None)
        if place is None:
            found.append(own)
        else:
            found[place] = _merge(found[place], own)
    return [replace(candidate, shapes=_list_shapes(evidence, candidate.causes)) for candidate in found]


def _make_candidate(evidence: Evidence, cause: Cause, facts: FactIndex) -> Candidate:
    advice = advise(cause.alone)  # Other causes have their own steps.
    is_remedy = advice.has_recipe or any(change.can_be_applied for change in advice.changes)
    changes = advice.changes or (CodeChange(text=advice.action),)
    if advice.is_expected or (advice.rule.gives_fewer and not is_remedy):
        changes = ()
    if changes and (changes[0].is_default or changes[0].text == DYNAMIC_BY_DEFAULT):
        kept = {**find_kept(cause, facts), **find_first_changes(evidence, cause)}
        if len(changes) < 2 or any(row.event_id not in kept for row in cause.failed):
            return Candidate((cause,), (advice,), changes, kept)
        changes = (*changes[1:], changes[0])
    if not changes or not is_dynamic_change(changes[0]):
        return Candidate((cause,), (advice,), changes)
    kept = find_kept(cause, facts)
    ordered = order_changes(changes, is_useless=all(row.event_id in kept for row in cause.failed))
    return Candidate((cause,), (advice,), ordered, kept if is_dynamic_change(ordered[0]) else {})


def order_changes(changes: Sequence[CodeChange], is_useless: bool) -> tuple[CodeChange, ...]:
    """The changes, those that make a number dynamic last if that saves nothing: for the values 0 and 1."""
    return tuple(sorted(changes, key=lambda change: is_useless and is_dynamic_change(change)))


def _is_one_change(one: Candidate, other: Candidate) -> bool:
    """True if a change does all that the other does, if both mark sizes of one tensor at one line, or if a person makes
    both to one tensor there.
    """
    if one.change is None or other.change is None:
        return False
    own, others = list_atoms(one.change), list_atoms(other.change)
    if own and others and (own <= others or others <= own):
        return True
    if one.change.can_be_applied != other.change.can_be_applied:
        return False
    return bool(_get_tensors(one) & _get_tensors(other))


def list_atoms(change: CodeChange) -> frozenset[Atom]:
    """What a change does, in parts that can be compared."""
    lines = (
        (edit.file, edit.line, edit.kind, edit.old if edit.kind == "replace" else "", line)
        for edit in change.edits
        for line in edit.new.splitlines()
    )
    items = ((key, item) for key, value in (change.settings or {}).items() for item in str(value).split(","))
    return frozenset([*lines, *items])


def _get_tensors(candidate: Candidate) -> frozenset[tuple[object, ...]]:
    """The tensors whose sizes it is about, each at its call site; all properties of tensors that only a person can make
    alike.
    """
    is_edit = candidate.change is not None and candidate.change.can_be_applied
    return frozenset(
        (cause.call_site.file, cause.call_site.line, cause.user.value)
        for cause in candidate.causes
        if cause.call_site is not None and cause.expression is not None
        if (cause.path.is_size if is_edit else cause.path.tensor_property)
    )


def _merge(one: Candidate, other: Candidate) -> Candidate:
    """One candidate whose changes do what those of both do."""
    changes = []
    for pair in zip(one.changes, other.changes, strict=False):
        settings = merge_settings([change.settings for change in pair]).settings
        edits = merge_edits(edit for change in pair for edit in change.edits)
        texts = dict.fromkeys(change.text for change in pair if change.text)
        changes.append(CodeChange(settings or None, edits, " ".join(texts)))
    kept = {**one.kept, **other.kept}
    return Candidate((*one.causes, *other.causes), (*one.advice, *other.advice), tuple(changes), kept)


def merge_edits(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits with one for each place at which lines are inserted."""
    merged: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        place = edit.file, edit.line, edit.kind, edit.old, edit.new if edit.kind == "replace" else ""
        known = merged.get(place)
        lines = dict.fromkeys([*(known.new.splitlines() if known else ()), *edit.new.splitlines()])
        merged[place] = edit if edit.kind == "replace" else replace(edit, new="\n".join(lines))
    return tuple(merged.values())


# Recompiles that stay although a size or number is dynamic: those of 0 and 1, and of conditions on the value


def is_dynamic_change(change: CodeChange) -> bool:
    """True for a change that makes a size or number dynamic, and does nothing else."""
    marks = [line for edit in change.edits for line in edit.new.splitlines()]
    if not change.can_be_applied or not all(_MARK in line for line in marks):
        return False
    return _DYNAMIC_SETTINGS.issuperset(change.settings or {})


def find_kept(cause: Cause, facts: FactIndex) -> dict[int | None, str]:
    """The recompiles of a cause that happen even if its value is dynamic from the start: event id -> reason.

    Only sizes have special values: a number that is dynamic takes 0 and 1 as well. Where torch failed to compile a
    version in which the value varies, it fails at the first call too.
    """
    rows = cause.seen or cause.recompiles
    special = _list_special(rows) if cause.path.is_size else ()
    found = {row.event_id: "torch compiles 0 and 1 on their own, even if the value is dynamic" for row in special}
    for row in rows if cause.facts.exclusions else ():
        if (need := facts.find_exclusion(row, cause.source)) is not None:
            condition = format_expression(need.condition or cause.source)
            found[row.event_id] = f"its compiled version is valid only for {condition}"
    if is_branch(cause):
        found |= {row.event_id: _describe_branch(row) for row in list_crossings(cause)}
    return found | {row.event_id: _FAILED for row in rows if facts.has_failed(row)}


def _describe_branch(row: Recompile) -> str:
    place = format_place(row.user_file, row.user_line)
    return f"the code takes another branch{f' at {place}' if place else ''}, which needs a compiled version of its own"


def find_first_changes(evidence: Evidence, cause: Cause) -> dict[int | None, str]:
    """What stays of each function where torch makes a number dynamic by itself: the first recompile, and those that
    differ from all entries since then in something else too.
    """
    first: dict[tuple[Place, int | None], Recompile] = {}
    found = {}
    for row in cause.seen or cause.recompiles:
        start = first.setdefault((get_place(row), row.region), row)
        if row is start or not _fits_later_entry(evidence, row, start):
            found[row.event_id] = "torch makes a number dynamic after its first change"
    return found


def _fits_later_entry(evidence: Evidence, row: Recompile, start: Recompile) -> bool:
    """True if, of an entry that was made at `start` or later, no other guard failed than of the closest one; or if only
    the closest one was checked.
    """
    rows, compiles = evidence.by_compile(GuardFailure).get(row.compile_key, ()), evidence.by_compile(Compile)
    failed = {
        key: {one.guard_source for one in own} for key, own in group_by(rows, lambda f: f.entry_compile_key).items()
    }
    closest = failed.get(row.closest_compile_key)
    if closest is None or start.compile_key not in compiles:
        return True
    since = compiles[start.compile_key][0].event_id or 0
    made = {key: compiles[key][0].event_id or 0 for key in failed if key in compiles}
    return any(at >= since and failed[key] <= closest for key, at in made.items())


def _list_special(rows: Sequence[Recompile]) -> Iterator[Recompile]:
    """Those for the values 0 and 1, and the first one for any other value where an entry has only 0 or 1."""
    general: set[Place] = set()
    for row in rows:
        place = get_place(row)
        if row.expected not in ZERO_ONE:
            general.add(place)
        if row.actual in ZERO_ONE or (row.guard_kind == "symbolic_shape" and row.actual is None):
            yield row
        elif place not in general:
            general.add(place)
            yield row


# The choice: a recompile is saved when every guard that failed at it is changed

#: A cause by its number in the list of causes.
Blockers = frozenset[int]


@dataclass(frozen=True)
class Selection:
    """The chosen causes in their order. `saved` has the recompiles that each and all before it save together."""

    chosen: tuple[int, ...]
    saved: tuple[tuple[Recompile, ...], ...]
    alone: tuple[tuple[Recompile, ...], ...]


def select_causes(blockers: Mapping[Recompile, Blockers], can_change: Callable[[int], bool]) -> Selection:
    """Choose the smallest set of causes that saves the most seconds, the most valuable first.

    `blockers` has the causes whose guards failed at each recompile. Every cause of a recompile that can be saved at all
    is needed to save it, so the set is unique; what remains to choose is the order.
    """
    remaining = {row: causes for row, causes in blockers.items() if causes and all(map(can_change, causes))}
    chosen: list[int] = []

    def rate(option: Blockers) -> tuple[float, ...]:
        """A number that is the lower the more seconds, then recompiles, the causes save each; ties keep their order."""
        changed = option.union(chosen)
        saved = [row for row, causes in remaining.items() if causes <= changed]
        seconds = sum_seconds(row.lost_s for row in saved)
        return -seconds / len(option), -len(saved) / len(option), *sorted(option)

    while remaining:
        # The causes that together save the most per change, of those that complete at least one recompile.
        best = min({causes - set(chosen) for causes in remaining.values()}, key=rate)
        chosen += sorted(best, key=lambda cause: rate(frozenset([cause])))
        remaining = {row: causes for row, causes in remaining.items() if not causes <= set(chosen)}
    saved = tuple(find_saved(blockers, chosen[: number + 1]) for number in range(len(chosen)))
    return Selection(tuple(chosen), saved, tuple(find_saved(blockers, [cause]) for cause in chosen))


def find_saved(blockers: Mapping[Recompile, Blockers], changed: Collection[int]) -> tuple[Recompile, ...]:
    """The recompiles that do not happen when these causes are changed."""
    return tuple(row for row, causes in blockers.items() if causes and causes <= set(changed))


# The steps, from the chosen causes: where, what varies, what to change, and what that saves


#: The function that marks a dimension, of which there are several.
_MARK_CALL = re.compile(r"^[\w.]*mark_\w+(?=\()")


def _make_steps(
    evidence: Evidence, selection: Selection, chosen: Sequence[Candidate], specs: Sequence[DynamicSpec]
) -> tuple[PlanStep, ...]:
    """One step for each chosen candidate; what an earlier step does already is left out of a later one. Specifications
    that can replace a step are among its alternatives.
    """
    steps: list[PlanStep] = []
    written: set[tuple[str, int, str]] = set()
    for number, (candidate, saved, alone) in enumerate(zip(chosen, selection.saved, selection.alone, strict=True), 1):
        others = [other for other in chosen if other is not candidate]
        before = chosen[: number - 1]
        causes, seconds = candidate.causes, _sum_saved(evidence, saved)
        threads = tuple(dict.fromkeys(thread for cause in causes for thread in cause.facts.threads))
        change, *other_ways = (place_settings(change, threads) for change in candidate.changes)
        title, title_values = write_title(candidate)
        origin = _describe_line(causes)
        file, line, function, code = _find_place(causes[0], change)
        steps.append(
            PlanStep(
                rule=candidate.advice[0].rule.id,
                what=f"{describe_what(candidate)}{f' ({origin})' if origin else ''}",
                change=change.code,
                why=_explain(candidate),
                saving=_describe_saving(evidence, candidate, saved, seconds, alone, others, before),
                recompiles_saved_alone=len(alone),
                recompiles_saved=len(saved),
                seconds_saved=seconds,
                evidence=tuple(sorted(get_ids(candidate.rows))),
                file=file,
                line=line,
                function=function,
                code=code,
                expression=_get_expression(candidate),
                values=candidate.shapes or list_unique(value for cause in causes for value in cause.values),
                settings=change.settings,
                edits=tuple(edit for edit in (_drop_repeated(edit, written) for edit in change.edits) if edit.new),
                alternatives=(*other_ways, *(spec.change for spec in specs if number in spec.steps)),
                causes=tuple(advice.what_changed for advice in candidate.advice),
                title=title,
                title_values=title_values,
                origin=origin,
                is_certain=candidate.is_certain,
                is_by_hand=not change.can_be_applied,
            )
        )
    return tuple(steps)


def _drop_repeated(edit: Edit, written: set[tuple[str, int, str]]) -> Edit:
    """The edit without lines that an earlier step puts at the same place; a dimension is marked once."""
    if edit.kind != "insert_before":
        return edit
    keys = {line: (edit.file, edit.line, _MARK_CALL.sub("", line)) for line in edit.new.splitlines()}
    new = [line for line, key in keys.items() if key not in written]
    written.update(keys.values())
    return replace(edit, new="\n".join(new))


def _sum_saved(evidence: Evidence, saved: Sequence[Recompile]) -> float:
    """s of compiles that do not happen. Where sizes or numbers become dynamic, the first compile of a function takes as
    long as the longest of them, which torch made dynamic itself.
    """
    first: dict[Place, float] = {}
    for rows in evidence.by_compile(Compile).values():
        if rows[0].is_recompile is False:
            first.setdefault(get_place(rows[0]), sum_seconds(row.duration_s for row in rows))
    seconds = sum_seconds(row.lost_s for row in saved)
    numbers = [row for row in saved if row.guard_kind in _OF_NUMBERS and is_timed(row.lost_s)]
    for place, own in group_by(numbers, get_place).items():
        longest = max(row.lost_s or 0.0 for row in own)
        seconds -= max(0.0, longest - first.get(place, longest))
    return max(0.0, seconds)


def describe_what(candidate: Candidate) -> str:
    """What varies: `ids.shape[0] was 4, then 6`; sizes of one tensor as shapes."""
    if candidate.shapes:
        return f"{_get_expression(candidate)} {format_change(candidate.shapes)}"
    return "; ".join(list_unique(advice.what_changed for advice in candidate.advice))


def write_title(candidate: Candidate) -> tuple[str, tuple[str, ...]]:
    """The cause in a few words, and the values that it had: "`self.step` is a new number at every call", "`ids` comes
    in 3 shapes". What changed, without values, for what is no number.
    """
    causes, shapes = candidate.causes, candidate.shapes
    are_numbers = all(cause.family in ("tensor_size", "value") and len(cause.values) > 1 for cause in causes)
    if not are_numbers or any(get_value_type(value) not in ("int", "float") for c in causes for value in c.values):
        return describe_what(candidate), ()
    tensors = list_unique(get_name(cause, cause.path.owner.code) for cause in causes)
    if shapes or (all(cause.path.is_size for cause in causes) and len(tensors) < len(causes)):
        number = f"{len(shapes)} shapes" if shapes else "several shapes"
        return f"{_list_code(tensors)} {'come' if len(tensors) > 1 else 'comes'} in {number}", shapes
    names, values = list_unique(cause.name for cause in causes), causes[0].values
    if len(causes) > 1:
        return f"{_list_code(names)} change", ()
    if is_counter(values):
        return f"`{names[0]}` is a new number at every call", values
    return f"`{names[0]}` has {len(values)} values", values


def _list_code(names: Sequence[str]) -> str:
    return format_names([f"`{name}`" for name in names])


def _get_expression(candidate: Candidate) -> str | None:
    """What varies in the user's names, or in those of the compiled function: `ids.shape[0], ids.shape[1]`."""
    causes = candidate.causes
    ordered = sorted(causes, key=lambda cause: cause.path.dim or 0) if candidate.shapes else causes
    return ", ".join(list_unique(cause.name for cause in ordered)) or None


def _list_shapes(evidence: Evidence, causes: Sequence[Cause]) -> tuple[str, ...]:
    """The sizes of one tensor together, in the order of time: (4, 16), (6, 16), (6, 24). Empty for anything else, and
    where not all of its sizes are known at each recompile.
    """
    are_sizes = all(cause.path.is_size and cause.values for cause in causes)
    if len(causes) < 2 or not are_sizes or len({cause.path.owner for cause in causes}) > 1:
        return ()
    if len({cause.path.dim for cause in causes}) < len(causes):
        return ()  # Tensors of several functions that have the same name there.
    ordered = sorted(causes, key=lambda cause: cause.path.dim or 0)
    rows = {row.event_id: row for cause in ordered for row in cause.seen}
    shapes = [
        [cause.values[0] for cause in ordered],
        *(_find_sizes(evidence, row, ordered) for row in sorted(rows.values(), key=get_moment)),
    ]
    return list_unique(f"({', '.join(sizes)})" for sizes in shapes) if all(shapes) else ()


def _find_sizes(evidence: Evidence, row: Recompile, causes: Sequence[Cause]) -> list[str]:
    """What came at one recompile, as the guards of any earlier entry saw it; empty where a size is not known. One whose
    guards held is that of the first entry, if all guards of the entries were checked.
    """
    failures = list_failures(evidence, row)
    came = {name_any_instance(failure.guard_source or ""): failure.actual for failure in failures}
    is_full = evidence.meta.get("detail") == "full"
    sizes = [came.get(cause.source, cause.values[0] if is_full else None) for cause in causes]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else []


def _explain(candidate: Candidate) -> str:
    """Why, and why the value has no name in the user's own code if it has none."""
    reasons = (cause.user.reason for cause in candidate.causes)
    unnamed = next((f"It has no name at your call: {reason}." for reason in reasons if reason), "")
    texts = list_unique(advice.explanation for advice in candidate.advice)
    whole = [text for text in texts if not any(text in other for other in texts if other != text)]
    return " ".join(filter(None, [*whole, unnamed]))


def _describe_line(causes: Sequence[Cause]) -> str:
    """`model.py:12: self.step += 1`: where a module's number is compiled in, if the step is at the call."""
    cause = causes[0]
    is_attribute = len(causes) == 1 and cause.family == "value" and cause.path.is_module_attribute
    is_elsewhere = is_attribute and cause.user_place_text != cause.user_place
    return format_user_line(cause)[2:-1] if is_elsewhere else ""


Location = tuple[str | None, int | None, str | None, str | None]


def _find_place(cause: Cause, change: CodeChange) -> Location:
    """File, line, function and code of the user's line: of the edit, or the call; without both, of the guard."""
    edit, site = next((edit for edit in change.edits if edit.kind != BEGIN), None), cause.call_site
    if edit is not None and (site is None or (site.file, site.line) != (edit.file, edit.line)):
        return edit.file, edit.line, None, edit.code
    if site is not None:
        return site.file, site.line, site.function, site.code
    row = cause.recompiles[0]
    file, line = (row.user_file, row.user_line) if row.user_file else (row.file, row.line)
    return file, line, row.function, cause.user_code


def _describe_saving(
    evidence: Evidence,
    candidate: Candidate,
    saved: Sequence[Recompile],
    seconds: float,
    alone: Sequence[Recompile],
    others: Sequence[Candidate],
    before: Sequence[Candidate],
) -> str:
    """What the step saves with those before it, then what it saves alone, and what keeps it from saving more."""
    total, is_first = len(evidence.rows(Recompile)), not before
    timed = f" and {format_seconds(seconds)}" if seconds else ""
    amount = f"{len(saved)} of {format_amount(total, 'recompile')}{timed}" if saved else "nothing yet"
    is_certain = not saved or all(one.is_certain for one in (*before, candidate))
    does = "saves" if is_certain else "may save"
    together = f"{does.capitalize()} {amount}." if is_first else f"With the steps before it: {does} {amount}."
    rows = {row.event_id for row in candidate.rows}
    beside = [other for other in others if rows & {row.event_id for row in other.rows}]
    if not beside:
        return together
    fails = "fails" if len(beside) == 1 and ", " not in beside[0].name else "fail"
    names = _list_code([other.name for other in beside])
    if saved and is_first:
        return f"{together} {names} {fails} at some of the same calls."
    saves = format_amount(len(alone), "recompile") if alone else "nothing"
    does = "saves" if candidate.is_certain or not alone else "may save"
    together = "" if is_first else together
    return f"{together} Alone it {does} {saves}: {names} {fails} at the same calls.".lstrip()


# The plan


@kept_after(list_candidates, find_recompiles, find_compile_costs)
def make_plan(evidence: Evidence) -> Plan:
    """The smallest set of changes that saves the most compile seconds of a session."""
    candidates, recompiles = list_candidates(evidence), evidence.rows(Recompile)
    blockers = use_earlier_entries(find_blockers(recompiles, candidates), candidates, index_facts(evidence))
    selection = select_causes(blockers, lambda number: number != _KEPT and bool(candidates[number].changes))
    chosen = [candidates[number] for number in selection.chosen]
    has_specs = bool(chosen) and evidence.torch_version >= SPEC_SINCE
    specs = find_specs(evidence, [candidate.causes for candidate in chosen]) if has_specs else ()
    steps = tuple(
        replace(step, fingerprints=tuple(one.fingerprint for one in find_recompiles(evidence) if step.resolves(one)))
        for step in _make_steps(evidence, selection, chosen, specs)
    )
    saved = selection.saved[-1] if selection.saved else ()
    block = merge_settings([step.settings for step in steps])
    is_collected = "recompiles" not in find_gaps(evidence)
    meta = {} if is_outdated(evidence.meta, len(recompiles)) else evidence.meta
    outcome, searched = read_stored(Outcome, meta), read_stored(SearchOutcome, meta)
    return Plan(
        steps=steps,
        recompiles=len(recompiles),
        recompiles_saved=len(saved),
        seconds=sum_seconds(row.duration_s for row in evidence.rows(Compile)),
        seconds_saved=steps[-1].seconds_saved if steps else 0.0,
        settings=block.settings,
        unresolved=_list_unresolved(selection, candidates, blockers),
        tried=None if outcome is None else outcome.to_dict(),
        searched=None if searched is None else to_plain(searched),
        notes=(
            *_list_failures(evidence),
            *block.conflicts,
            *_explain_names(block.settings),
            *(_list_gaps(evidence, is_collected) if recompiles else ()),
        ),
        costs=find_compile_costs(evidence),
        is_collected=is_collected,
        is_own=evidence.is_ours,
        specs=specs,
    )
