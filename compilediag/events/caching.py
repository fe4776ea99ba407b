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

#: The sources that watch the caches of compiled graphs, and all that watch a cache.
COMPILE_CACHE_SOURCES = ("fx_graph_cache", "aot_autograd_cache", "remote_cache")
CACHE_SOURCES = (*COMPILE_CACHE_SOURCES, "dynamo_cache", "code_caches", "triton_bundle", "pgo")

#: What can be asked of a cache. `write`: a found entry's file is put in place again.
CACHE_ACTIONS = ("look_up", "store", "write", "clear")

#: What can become of a look-up or a store. `written`: the looked-up module's file was put in place again.
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

    function: str | None = column("string", "name of the code object whose compile looked it up")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    cache: str | None = column("string", "one of the caches", sources=CACHE_SOURCES)
    tier: str | None = column("string", "local (this machine's disk), remote (a server), memory (this process)")
    action: str | None = column("string", "look_up, store, write (a found entry's file is put in place again) or clear")
    outcome: str | None = column("string", "one of the cache outcomes")
    key: str | None = column("string", "the cache key")
    reason: str | None = column("string", "why it was bypassed, how it missed, what failed", user_data="content")
    exception_type: str | None = column("string", "class of the exception behind a bypass or a failure")
    guard: str | None = column(
        "string", "of a guard miss: the guards of the cached entry that did not hold", user_data="code"
    )
    taken_s: float | None = column("float64", "s that the compile took whose result was then saved", unit="s")
    saved_s: float | None = column("float64", "s of compile time that a hit saved, by torch's own account", unit="s")
    forward_saved_s: float | None = column("float64", "s of those that the forward would have taken", unit="s")
    backward_saved_s: float | None = column("float64", "s of those that the backward would have taken", unit="s")
    bytes: int | None = column("Int64", "bytes read or written, where torch's own call shows them", unit="bytes")
    kernels: int | None = column("Int64", "kernels that were generated for the entry, or that a bundle holds")
    counted_again: dict[str, int] | None = column(
        "json", "of a hit: torch's own counters that rise as if the graph were compiled anew, and by how much"
    )
    files: int | None = column("Int64", "files that a bundle of kernels was made of or put in place")
    forward_key: str | None = column("string", "of an aot_autograd entry: the fx_graph key of its forward")
    backward_key: str | None = column("string", "of an aot_autograd entry: the fx_graph key of its backward")
    nearest_key: str | None = column("string", "the earlier key of the same function with the fewest differences")
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
