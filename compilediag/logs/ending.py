"""What a session of logs says of itself: what was read, what was not, and what no log tells."""

from __future__ import annotations

import time
from collections import Counter

from ..diagnosis.rules.coverage import FEEDS
from ..events import SourceStatus
from ..storage.store import Store
from .log_decoder import ReadTally
from .reading import last_id

#: The sources of a live watch that a log stands in for. Of remote caches it has what came of the look-up.
TOLD = {
    *("compiles", "recompiles", "graph_breaks", "phases", "trace", "dynamic"),
    *("fx_graph_cache", "aot_autograd_cache", "remote_cache"),
}
#: The source that says what was read.
SOURCE = "logs"


def finish(store: Store, tally: ReadTally, dropped: int, said: str) -> None:
    """All is read: the states of the sources, and the session's begin and end. `said` is what was read, `told`."""
    store.append(_statuses(store, tally, dropped, said))
    query = "SELECT min(time_ns), max(time_ns + coalesce(duration_s, 0) * 1e9) FROM events WHERE kind <> 'source'"
    first, last = store.connection.execute(query).fetchone()
    now = time.time_ns()
    store.set_meta(torch_version=tally.torch_version, created_ns=first or now, stopped_ns=int(last or now))
    store.set_meta(ingest=None, ingested=None)


def _statuses(store: Store, tally: ReadTally, dropped: int, said: str) -> list[SourceStatus]:
    """A state for every source of a live watch, by what a log tells, and what was read."""
    now = time.time_ns()
    untold = {name for names in FEEDS.values() for name in names} - TOLD
    reason = "torch's trace log does not tell"
    return [
        *(SourceStatus(time_ns=now, name=name, status="active") for name in sorted(TOLD)),
        *(SourceStatus(time_ns=now, name=name, status="unavailable", reason=reason) for name in sorted(untold)),
        SourceStatus(
            time_ns=now,
            name=SOURCE,
            status="active",
            reason=said,
            events=last_id(store),
            dropped=tally.faults.total() + dropped,
        ),
    ]


def told(files: int, copies: int, tally: ReadTally) -> str:
    """What was read, in a sentence."""
    parts = [f"ingested from {files} {'file' if files == 1 else 'files'}: {tally.records} records"]
    parts.append(f"{len(tally.unknown)} unknown kinds kept and counted" + _in_brackets(tally.unknown))
    parts.append(f"{tally.faults.total()} unread" + _in_brackets(tally.faults))
    if copies:
        parts.append(f"{copies} copies of them left out")
    if tally.other_ranks:
        parts.append(f"in {tally.other_ranks} the records have another rank than the file's name")
    return ", ".join(parts)


def times(counts: Counter[str]) -> str:
    """`3x this, 1x that`, the most frequent first."""
    shown = [f"{number}x {what}" for what, number in counts.most_common(5)]
    return ", ".join(shown) + (f", {len(counts) - 5} more kinds" if len(counts) > 5 else "")


def _in_brackets(counts: Counter[str]) -> str:
    return f" ({times(counts)})" if counts else ""
