"""What a search found, as a document, as plain values, and its exit code."""

from __future__ import annotations

from typing import Any

from ..diagnosis.plan.plan import SearchOutcome
from ..diagnosis.source_edits import EditError
from ..document import Block, CodeBlock, Items, Para, Place, Section, Table
from ..errors import INTERRUPTED
from ..formatting import format_amount, format_milliseconds, format_names, format_seconds
from ..json_document import to_plain
from .search import Attempt, FixResult, Left, State


def describe_fix(result: FixResult, folder: str | None = None) -> Section:
    """The result as a document: the headline, the patch, the proof, what remains, and what was tried."""
    blocks: list[Block] = [Para(make_headline(result), strong=True)]
    if result.holds:
        blocks.append(CodeBlock(make_patch(result, folder).rstrip("\n"), "The patch:"))
        # What comes back without each change; known only if there are several.
        several = result.changes if len(result.changes) > 1 else ()
        reasons = [
            [f"without {change.title}: {state.objection or state.counts}"]
            for change in several
            if (state := result.without.get(change)) is not None
        ]
        blocks += ["Each line is needed:", Items(reasons)] if reasons else []
    blocks += [table] if (table := _describe_runs(result)) is not None else []
    if result.left:
        blocks += [
            "Left:",
            Items(
                [[Para(Place(left.place), ": " if left.place else "", _describe_left(left))] for left in result.left]
            ),
        ]
    # Other changes that do as much as the ones that were found, the smallest first.
    equal = [
        one
        for one in result.attempts
        if result.holds
        and result.after is not None
        and one.state.objection is None
        and one.state.score.result == result.after.score.result
        and not {*result.changes} & {*one.state.changes}
    ]
    equal.sort(key=lambda one: one.state.lines)
    alternatives = [[f"{one.title} ({format_amount(one.state.lines, 'line')})"] for one in equal[:_MOST_ALTERNATIVES]]
    blocks += ["As good:", Items(alternatives)] if alternatives else []
    rejected = _list_rejected(result)
    if rejected:
        blocks += ["Tried and rejected:", Items([[f"{one}."] for one in rejected])]
    return Section(*blocks, *_list_notes(result))


_MOST_ALTERNATIVES = 3
_MOST_TRIED = 4
_NOT_PROVEN = "Not proven with the program's own backend."


def _list_rejected(result: FixResult) -> tuple[str, ...]:
    """What was rejected, and why; once, if it was tried on several states."""
    found = (f"{one.title}: {one.state.objection}" for one in result.attempts if one.state.objection)
    return tuple(dict.fromkeys(found))


def _list_notes(result: FixResult) -> tuple[str, ...]:
    return (*result.notes, *([_NOT_PROVEN] if result.holds and result.proof is None else []))


def _describe_left(left: Left) -> str:
    """`x.shape[0] was 4, then 6 at call 5 (1 recompile, model.py:31: y = x + k): every compiled version is needed`"""
    numbers = format_names([str(number) for number in left.calls], 5) if left.calls else ""
    when = f" at call{'s' if len(left.calls) > 1 else ''} {numbers}" if numbers else ""
    amount = format_amount(left.recompiles, "recompile") if left.recompiles else ""
    facts = ", ".join(filter(None, (amount, left.line)))
    return f"{left.what}{when}{f' ({facts})' if facts else ''}: {_explain_left(left)}"


def _explain_left(left: Left) -> str:
    """Why it is left: what was tried for it, and what a person can do."""
    if left.is_needed:
        return "every compiled version is needed"
    shown = [
        f"{one.title} ({one.objection or f'recompiles {one.recompiles_before} -> {one.recompiles}'})"
        for one in left.tried[:_MOST_TRIED]
    ]
    more = len(left.tried) - len(shown)
    tried = f"Tried: {'; '.join(shown)}{f'; and {more} more' if more else ''}." if shown else ""
    return " ".join(filter(None, (left.reason, tried))) or "no move is known"


def make_headline(result: FixResult) -> str:
    """What came out, in one line."""
    before = result.before
    runs = f"{format_amount(result.runs, 'run')}, {format_seconds(result.seconds)}"
    if result.problem is not None:
        return f"Nothing was tried: {result.problem}."
    if result.is_interrupted and not result.changes:
        return f"Interrupted: nothing was found so far ({runs})."
    if before is None:
        return "Nothing was tried: the program did not run."
    if not before.run.compiles and not before.score.is_open:
        return "Nothing to fix: nothing was compiled."
    if not before.score.is_open:
        return "Nothing to fix: nothing recompiled, and no graph breaks."
    if result.proof is not None and result.proof.objection:
        return f"Not proven: {result.proof.objection} ({runs})."
    if not result.changes or result.after is None or result.program is None:
        return f"No change was found that helps. Left: {before.counts} ({runs})."
    lines = format_amount(result.program.count_lines(result.changes), "line")
    proof = result.proof
    changes = _list_changes(proof.before, proof.after) if proof else _list_changes(before, result.after)
    how = "proven" if proof else "interrupted, tried" if result.is_interrupted else "tried"
    return f"{lines} changed: {', '.join(changes)} ({how}: {runs})."


def _list_changes(before: State, after: State) -> list[str]:
    """What differs in another state, and what is to be fixed: `recompiles 3 -> 0`."""
    one, other = before.run, after.run
    is_compiled_instead = other.recompiles < one.recompiles and other.compiles >= one.compiles
    seconds = [format_seconds(run.guards_us / 1e6) for run in (one, other)]
    facts = (
        (one.recompiles or other.recompiles, "recompiles", one.recompiles, other.recompiles),
        (is_compiled_instead, "compiles", one.compiles, other.compiles),
        (one.graph_breaks or other.graph_breaks, "graph breaks", one.graph_breaks, other.graph_breaks),
        (before.is_unrolled, "calls in the largest graph", f"{one.largest:,}", f"{other.largest:,}"),
        (one.uncached, "graphs that no cache keeps", one.uncached, other.uncached),
        (before.has_guards, "a check of all guards", *seconds),
        (one.limits or other.limits, "limits reached", one.limits, other.limits),
    )
    return [f"{name} {old} -> {new}" for is_shown, name, old, new in facts if is_shown]


def make_patch(result: FixResult, folder: str | None = None) -> str:
    """The changes as a unified diff; "" if no change holds."""
    if result.program is None or not result.holds:
        return ""
    try:
        return result.program.diff(result.changes, folder)
    except EditError:
        return ""


def _describe_runs(result: FixResult) -> Table | None:
    if result.proof is None or result.before is None:
        return None
    before, after = result.proof.before, result.proof.after
    rows: list[list[str]] = [
        ["recompiles", str(before.run.recompiles), str(after.run.recompiles)],
        ["graph breaks", str(before.run.graph_breaks), str(after.run.graph_breaks)],
        ["compile time", format_seconds(before.run.compile_seconds), format_seconds(after.run.compile_seconds)],
        ["whole run", format_seconds(before.run.run.wall), format_seconds(after.run.run.wall)],
    ]
    warm = [
        format_milliseconds(1e3 * one.calls.warm_s) if one.calls and one.calls.warm_s else "" for one in (before, after)
    ]
    if all(warm):
        rows.append(["a call that compiles nothing", *warm])
    return Table(["own backend", "unchanged", "changed"], rows, right=(1, 2))


def to_outcome(result: FixResult) -> SearchOutcome:
    """The result as it is stored in a session. The numbers are those of the proof, or without one the recompiles of the
    search alone.
    """
    proof = result.proof
    before, after = (proof.before, proof.after) if proof is not None else (result.before, result.after)
    measured: dict[str, Any] = {}
    if result.holds and before is not None and after is not None and result.program is not None:
        measured["lines"] = result.program.count_lines(result.changes)
        for name, state in (("before", before), ("after", after)):
            measured[f"recompiles_{name}"] = state.run.recompiles
            if proof is not None:
                measured[f"compile_seconds_{name}"] = state.run.compile_seconds
                measured[f"wall_seconds_{name}"] = state.run.run.wall
    return SearchOutcome(
        headline=make_headline(result),
        patch=make_patch(result),
        holds=result.holds,
        left=tuple(
            f"{left.place}: {_describe_left(left)}" if left.place else _describe_left(left) for left in result.left
        ),
        rejected=_list_rejected(result),
        notes=_list_notes(result),
        **measured,
    )


def format_attempt(result: FixResult, attempt: Attempt | None) -> str:
    """One run in one line, for a terminal."""
    if attempt is None:
        assert result.before is not None
        return f"unchanged: {result.before.counts}"
    state, before = attempt.state, attempt.before
    changes = _list_changes(before, state)
    if attempt.move and attempt.is_kept and state.score.result == before.score.result:
        changes.append(f"guards that fail {before.run.failures} -> {state.run.failures}")
    outcome = state.objection or ", ".join(changes) or "nothing left to fix"
    if not attempt.move:
        verdict = "not needed" if attempt.is_kept else "needed"
    else:
        verdict = "rejected" if state.objection else "better" if attempt.is_kept else "no better"
    return f"[{attempt.number}] {attempt.title}: {outcome}; {verdict}"


def get_exit_code(result: FixResult) -> int:
    """0: proven, and nothing is left that is not needed, or nothing to fix; 1: something avoidable is left; 2: nothing
    was proven; 3: the program cannot be tried; 130: the search was interrupted.
    """
    if result.is_interrupted:
        return INTERRUPTED
    if result.problem is not None or result.before is None:
        return 3
    if not result.before.score.is_open:
        return 0
    if not result.holds:
        is_needed = bool(result.left) and all(left.is_needed for left in result.left)
        return 0 if is_needed and not result.changes else 2
    return 0 if all(left.is_needed for left in result.left) else 1


def to_values(result: FixResult, folder: str | None = None) -> dict[str, Any]:
    """The result as plain JSON values."""
    return {
        "headline": make_headline(result),
        "exit_code": get_exit_code(result),
        "problem": result.problem,
        "is_proven": result.holds and result.proof is not None,
        "patch": make_patch(result, folder),
        "lines": result.program.count_lines(result.changes) if result.program and result.holds else 0,
        "changes": [
            {
                "kind": change.kind,
                "title": change.title,
                "recompiles_without": result.without[change].run.recompiles if change in result.without else None,
            }
            for change in result.changes
        ],
        "search": {"backend": result.backend, **_list_values(result.before, result.after)},
        "proof": None if result.proof is None else _list_values(result.proof.before, result.proof.after),
        "left": to_plain(result.left),
        "tried": [
            {
                "title": one.title,
                "move": one.move,
                "lines": one.state.lines,
                "recompiles": one.state.run.recompiles,
                "graph_breaks": one.state.run.graph_breaks,
                "objection": one.state.objection,
                "is_kept": one.is_kept,
            }
            for one in result.attempts
        ],
        "runs": result.runs,
        "seconds": round(result.seconds, 3),
        "notes": [*result.notes],
    }


def _list_values(before: State | None, after: State | None) -> dict[str, Any]:
    return {name: None if state is None else _count(state) for name, state in (("before", before), ("after", after))}


def _count(state: State) -> dict[str, Any]:
    run = state.run
    return {
        "recompiles": run.recompiles,
        "graph_breaks": run.graph_breaks,
        "limits": run.limits,
        "compiles": run.compiles,
        "operations": run.operations,
        "uncached": run.uncached,
        "compile_seconds": round(run.compile_seconds, 3),
        "wall_seconds": round(run.run.wall, 3),
        "warm_call_seconds": state.calls.warm_s if state.calls is not None else None,
    }
