"""One log into a session's file."""

from __future__ import annotations

from ..errors import CompilediagError
from ..storage.store import Store
from .log_decoder import LogDecoder, ReadTally
from .log_files import LogFile, open_log
from .progress import Progress
from .writing import LogWriter


def read_log(log: LogFile, store: Store, writer: LogWriter, progress: Progress, before: int) -> ReadTally:
    """Read one log to its end; `before` are the bytes that were read before it. OSError becomes a CompilediagError."""
    first = last_id(store)
    try:
        with open_log(log.path) as stream:
            decoder = LogDecoder(log, stream)
            for item, pid, rank in decoder.items():
                writer.put(item, pid, rank)
                progress.at(before + stream.position, log.path.name)
    except OSError as error:
        raise CompilediagError(f"{log.path} can't be read to its end: {error}") from None
    writer.flush()
    with store.connection as db:
        for pid, rank in decoder.ranks().items():
            db.execute("UPDATE events SET rank = ? WHERE id > ? AND pid = ? AND rank IS NULL", (rank, first, pid))
    return decoder.tally


def last_id(store: Store) -> int:
    return store.connection.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0]
