"""A look-up or store in one of the compiler's caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column

#: What a `cache` column can name.
CACHES = (
    "fx_graph",
    "aot_autograd",
    "autotune",
    "triton_bundle",
    "triton_template",
    "pgo",
    "dynamo_code",
    "py_code",
    "cpp_code",
    "cuda_code",
    "triton_code",
)
#: Those that hold whole compiled graphs. Others (a module's file, a kernel's binary) hold parts of those.
COMPILE_CACHES = ("fx_graph", "aot_autograd")

#: The sources that watch the caches of compiled graphs, and all that watch a cache.
COMPILE_CACHE_SOURCES = ("fx_graph_cache", "aot_autograd_cache", "remote_cache")
CACHE_SOURCES = (*COMPILE_CACHE_SOURCES, "dynamo_cache", "code_caches", "triton_bundle", "pgo")

#: Values of the `action` column of lookups. `write`: the file of a found entry is written again.
CACHE_ACTIONS = ("look_up", "store", "write", "clear")

#: Results of a lookup or a store. `written`: the file of the module was written again.
CACHE_OUTCOMES = (
    "hit",
    "miss",
    "guard_miss",
    "bypass",
    "disabled",
    "saved",
    "failed",
    "written",
    "evicted",
    "cleared",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLookup(Event):
    kind: ClassVar[str] = "cache_lookup"
    table: ClassVar[str] = "cache_lookups"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "cache",
        "action",
        "outcome",
        "tier",
        "saved_s",
        "reason",
        "key_diff",
    )

    function: str | None = column("string", "name of the code object whose compile looked it up", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    cache: str | None = column("string", "one of the caches", sources=CACHE_SOURCES)
    tier: str | None = column("string", "local (this machine's disk), remote (a server), memory (this process)")
    action: str | None = column("string", "look_up, store, write (the file of a found entry is written again) or clear")
    outcome: str | None = column("string", "one of the cache outcomes")
    key: str | None = column("string", "the cache key", user_data="key")
    reason: str | None = column("string", "why it was bypassed, missed or failed", user_data="content")
    exception_type: str | None = column(
        "string", "class of the exception behind a bypass or a failure", user_data="name"
    )
    guard: str | None = column(
        "string", "for a guard miss: the guards of the cached entry that failed", user_data="code"
    )
    taken_s: float | None = column("float64", "duration of the compile whose result was saved", unit="s")
    saved_s: float | None = column("float64", "compile time that a hit saved, as torch reports it", unit="s")
    forward_saved_s: float | None = column("float64", "part of saved_s for the forward", unit="s")
    backward_saved_s: float | None = column("float64", "part of saved_s for the backward", unit="s")
    bytes: int | None = column("Int64", "size of what was read or written, if torch's call shows it", unit="bytes")
    kernels: int | None = column("Int64", "kernels that were generated for the entry, or that a bundle contains")
    counted_again: dict[str, int] | None = column(
        "json",
        "for a hit: torch's counters that increase as if the graph were compiled again -> by how much",
        user_data="numbers",
    )
    files: int | None = column("Int64", "files that a bundle of kernels was made from or unpacked to")
    forward_key: str | None = column(
        "string", "for an aot_autograd entry: the fx_graph key of its forward", user_data="key"
    )
    backward_key: str | None = column(
        "string", "for an aot_autograd entry: the fx_graph key of its backward", user_data="key"
    )
    nearest_key: str | None = column(
        "string", "the earlier key of the same function with the fewest differences", user_data="key"
    )
    nearest_session: str | None = column(
        "string",
        "when and where that key was seen, if it was in an earlier session; NA if it was in this one",
        user_data="content",
    )
    key_diff: list[str] | None = column(
        "json", "components that differ from nearest_key, as `name: old -> new`", user_data="content"
    )

    @property
    def title(self) -> str:
        return f"{self.cache} {self.outcome}"
