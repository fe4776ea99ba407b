"""A recompile and the guards that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column

#: Kinds of guards that a `guard_kind` column can name.
GUARD_KINDS = (
    "tensor_size",
    "tensor_stride",
    "tensor_rank",
    "tensor_dtype",
    "tensor_device",
    "dispatch_keys",
    "requires_grad",
    "type",
    "value",
    "identity",
    "length",
    "dict_keys",
    "hasattr",
    "alias",
    "symbolic_shape",
    "global_state",
    "default_device",
    "mode_stack",
    "backend",
    "dead_reference",
    "other",
)

_LOOKALIKE = "another object or class of `actual` that looks the same as the expected one; NA for any other value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompile(Event):
    kind: ClassVar[str] = "recompile"
    table: ClassVar[str] = "recompiles"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "line",
        "guard_source",
        "guard_kind",
        "expected",
        "actual",
        "lost_s",
        "user_line",
        "user_code",
    )

    function: str | None = column(
        "string", "name of the compiled code object", sources=("recompiles",), user_data="name"
    )
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    region: int | None = column("Int64", "region of its compile: only entries of the same region are compared")
    closest_compile_id: str | None = column("string", "compile id of the earlier entry that came closest to matching")
    closest_compile_key: str | None = column("string", "compile key of that entry")
    guard_source: str | None = column(
        "string", "the guarded value, as the user would write it: x.size()[0], self.n", user_data="source"
    )
    guard_kind: str | None = column("string", "one of the guard kinds")
    expected: str | None = column("string", "value that the closest entry requires", user_data="content")
    actual: str | None = column("string", "value at this call", user_data="content")
    lookalike: str | None = column("string", _LOOKALIKE, user_data="content")
    user_file: str | None = column("string", "file of the line that created the guard", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    reason: str | None = column("string", "torch's text for the closest entry", user_data="content")
    entries_checked: int | None = column("Int64", "earlier entries of the function, none of which fits the call")
    entries_analyzed: int | None = column(
        "Int64",
        "of these, those whose failing guards were searched for: full takes the closest 8; lean takes all if there are "
        "at most 8, else the latest",
    )
    guards_failed: int | None = column("Int64", "failing guards found in the analyzed entries together")
    lost_s: float | None = column("float64", "duration of its compile, backward included", unit="s")

    @property
    def title(self) -> str:
        return f"{self.function or '?'}: {self.guard_source or self.guard_kind}: {self.expected} -> {self.actual}"


#: What a `refused_by` column can name: the stances of `torch.compiler.set_stance`, and code compiled ahead of time.
REFUSED_BY = (
    "eager_on_recompile",
    "fail_on_recompile",
    "force_eager",
    "eager_then_compile",
    "aot_eager_then_compile",
    "skip_guard_eval_unsafe",
    "aot_compile",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCall(Event):
    """Calls that no compiled code fits, and that torch did not compile: because of a stance, or of `aot_compile`.

    The guards that failed are in `guard_failures`, under the same compile key, which no compile has.
    """

    kind: ClassVar[str] = "refused_call"
    table: ClassVar[str] = "refused_calls"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "line",
        "refused_by",
        "ran",
        "count",
        "guard_source",
        "expected",
        "actual",
    )

    function: str | None = column(
        "string", "name of the code object that was called", sources=("refusals",), user_data="name"
    )
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    refused_by: str | None = column(
        "string", "the stance of torch.compiler.set_stance, or aot_compile for code that was compiled ahead of time"
    )
    ran: str | None = column(
        "string", "eager, aot_eager (compiled with that backend instead), raised, or unchecked (guards are skipped)"
    )
    count: int | None = column("Int64", "calls since the previous row of the same compile key; NA if not counted")
    guard_source: str | None = column(
        "string", "the guarded value that failed in the closest entry; NA if there is no entry", user_data="source"
    )
    guard_kind: str | None = column("string", "one of the guard kinds")
    expected: str | None = column("string", "value that the closest entry requires", user_data="content")
    actual: str | None = column("string", "value at this call", user_data="content")
    reason: str | None = column("string", "text of that guard", user_data="content")
    entries_checked: int | None = column("Int64", "entries whose guards were evaluated")
    closest_compile_id: str | None = column("string", "compile id of the closest entry")
    closest_compile_key: str | None = column("string", "compile key of that entry")
    user_file: str | None = column("string", "file of the line that created the guard", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    set_file: str | None = column("string", "file of the user's line that set the stance", user_data="path")
    set_line: int | None = column("Int64", "number of that line")
    stack: str | None = column("string", "key of the call stack that ends in the function, see stacks")

    @property
    def title(self) -> str:
        return f"{self.function or '?'} {self.ran or ''} ({self.refused_by})"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFailure(Event):
    kind: ClassVar[str] = "guard_failure"
    table: ClassVar[str] = "guard_failures"
    shown_first: ClassVar[tuple[str, ...]] = (
        "guard_source",
        "guard_kind",
        "expected",
        "actual",
        "is_first",
        "entry_compile_id",
        "user_line",
    )

    entry_compile_id: str | None = column("string", "compile id of the earlier entry", sources=("recompiles",))
    entry_compile_key: str | None = column("string", "compile key of that entry")
    guard_source: str | None = column("string", "the guarded value", user_data="source")
    guard_kind: str | None = column("string", "one of the guard kinds")
    expected: str | None = column("string", "value that the entry requires", user_data="content")
    actual: str | None = column("string", "value at this call", user_data="content")
    lookalike: str | None = column("string", _LOOKALIKE, user_data="content")
    is_first: bool | None = column("boolean", "true for the guard that torch itself reports first")
    fail_count: int | None = column("Int64", "times this guard's subtree has failed so far, by torch's own count")
    guard: str | None = column(
        "string",
        "text of the guard with torch's comment; rows of other entries leave out a comment that the closest entry has",
        user_data="code",
    )
    user_file: str | None = column("string", "file of the line that created the guard", user_data="path")
    user_line: int | None = column("Int64", "number of that line")

    @property
    def title(self) -> str:
        return f"{self.guard_source or self.guard_kind}: {self.expected} -> {self.actual}"
