"""A recompile and the guards that failed, from the failing guards of each earlier entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...events import GuardFailure, Recompile
from ..call_stacks import FROZEN
from .guard_text import ParsedGuard, parse_guard, split_comment


@dataclass(slots=True)
class FailingGuard:
    """One failing guard. `guard` is torch's text; `fail_count` is torch's count for the guard's subtree. `lookalike` is
    the object of `actual` if it is another one that looks the same as the expected one.
    """

    guard: str
    source: str | None
    kind: str
    expected: str | None
    actual: str | None
    is_first: bool = False
    fail_count: int | None = None
    user_file: str | None = None
    user_line: int | None = None
    user_code: str | None = None
    lookalike: str | None = None


#: Kinds of guards on the structure of a value, not on its size. An entry for another structure has no guards on what
#: such a value holds, so it can have fewer failing guards than an entry that is closer.
STRUCTURE = ("type", "length", "dict_keys", "hasattr", "tensor_rank")
#: Kinds of guards on inputs that fail because their module changed.
_FOLLOWS = ("tensor_size", "tensor_stride", "symbolic_shape", "requires_grad")


@dataclass
class FailedEntry:
    """One earlier entry of the frame and its failing guards. `age`: (is it alive?, its number)."""

    compile_id: str
    age: tuple[bool, int]
    guards: list[FailingGuard]
    reason: str | None
    compile_key: str | None = None

    @property
    def distance(self) -> tuple[bool, int, int, int]:
        """The smallest is the closest: a live entry for the same structure with few failing guards, a recent one."""
        live, number = self.age
        return (not live, sum(map(_is_structural, self.guards)), len(self.guards), -number)


def _is_structural(guard: FailingGuard) -> bool:
    """Return True for a guard on structure: a type, a length, a rank, or whether a value is None."""
    if guard.kind == "value":
        return (guard.expected == "None") != (guard.actual == "None") and guard.actual is not None
    return guard.kind in STRUCTURE


def make_first_failure(parsed: ParsedGuard) -> FailingGuard:
    """Make the guard that torch reports as the first to fail."""
    return FailingGuard(
        guard=parsed.text,
        source=parsed.source,
        kind=parsed.kind,
        expected=parsed.expected,
        actual=parsed.actual,
        is_first=True,
        user_file=parsed.user_file,
        user_line=parsed.user_line,
        user_code=parsed.user_code,
    )


def parse_entry(reason: str) -> FailedEntry:
    """Parse the entry that one of torch's recompile reasons, `0/1: text`, names."""
    compile_id, _, _ = reason.partition(": ")
    number = compile_id.rpartition("/")[2]
    guard = make_first_failure(parse_guard(reason))
    return FailedEntry(
        compile_id, (guard.kind != "dead_reference", int(number) if number.isdecimal() else 0), [guard], reason
    )


def make_recompile_events(
    time_ns: int,
    compile_id: str | None,
    where: tuple[str | None, str | None, int | None],
    entries: Sequence[FailedEntry],
    closest: FailedEntry,
    is_torchs: Callable[[str], bool],
    compile_key: str | None = None,
    checked: int | None = None,
    region: int | None = None,
    thread: int | None = None,
) -> Iterator[Recompile | GuardFailure]:
    """Yield the recompile and one event per failing guard. `where`: function, file and line of the code object.

    `entries` are those that were analyzed, `checked` is the number of all; by default there are no others.

    A guard can come from a line inside torch (`F.linear` in nn.Linear). `is_torchs` recognizes such files; those lines
    are not reported as the user's. torch's comment on a guard, which is longer than the rest, is in the rows of the
    closest entry, and not again in those of others that have the same one.
    """
    function, file, line = where
    main = _find_main_guard(closest, function)
    comments = {guard.guard[len(split_comment(guard.guard)[0]) :] for guard in closest.guards}
    yield Recompile(
        time_ns=time_ns,
        compile_id=compile_id,
        compile_key=compile_key,
        function=function,
        file=file,
        line=line,
        region=region,
        closest_compile_id=closest.compile_id,
        closest_compile_key=closest.compile_key,
        reason=closest.reason,
        entries_checked=len(entries) if checked is None else checked,
        entries_analyzed=len(entries),
        guards_failed=sum(len(entry.guards) for entry in entries),
        thread=thread,
        **(_make_main_columns(main, closest.reason, is_torchs) if main else {"guard_kind": "other"}),
    )
    for entry in entries:
        for guard in entry.guards:
            repeated = "" if entry is closest else max(filter(guard.guard.endswith, comments), key=len, default="")
            yield GuardFailure(
                time_ns=time_ns,
                compile_id=compile_id,
                compile_key=compile_key,
                entry_compile_id=entry.compile_id,
                entry_compile_key=entry.compile_key,
                is_first=guard.is_first,
                fail_count=guard.fail_count,
                guard=guard.guard.removesuffix(repeated),
                **_make_columns(guard, is_torchs),
            )


def _find_main_guard(closest: FailedEntry, function: str | None) -> FailingGuard | None:
    """Return the guard that explains the recompile: the first to fail, or a change of module that caused it.

    One function, `inner`, calls all modules of torch.nn, which it has as `fn`. If the parameters of a module have
    another size, it is another module, and that is why its inputs have another size.
    """
    first = closest.guards[0] if closest.guards else None
    if function == "inner":
        return next((g for g in closest.guards if (g.kind, g.source) == ("type", "fn")), first)
    if first is not None and first.kind in _FOLLOWS:
        for guard in closest.guards:
            operands = parse_guard(guard.guard).operands if guard.kind == "tensor_size" else ()
            if any(path.has_attribute("_parameters") for path in operands):
                return guard
    return first


def _make_main_columns(guard: FailingGuard, reason: str | None, is_torchs: Callable[[str], bool]) -> dict[str, Any]:
    if reason and (guard.user_file or "").startswith(FROZEN):
        parsed = parse_guard(reason)
        if parsed.user_file is not None:
            guard = replace(guard, user_file=parsed.user_file, user_line=parsed.user_line, user_code=parsed.user_code)
    columns = _make_columns(guard, is_torchs)
    return {**columns, "user_code": guard.user_code if columns["user_file"] else None}


def _make_columns(guard: FailingGuard, is_torchs: Callable[[str], bool]) -> dict[str, Any]:
    file = guard.user_file
    users = file is not None and not file.startswith(FROZEN) and not is_torchs(file)
    return {
        "guard_source": guard.source,
        "guard_kind": guard.kind,
        "expected": guard.expected,
        "actual": guard.actual,
        "lookalike": guard.lookalike,
        "user_file": file if users else None,
        "user_line": guard.user_line if users else None,
    }
