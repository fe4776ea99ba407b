"""Log files: which of the given paths are logs, how each is unpacked, which are copies, and how much is read."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import os
import re
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import CompilediagError
from ..formatting import format_bytes, format_seconds, format_share
from ..system.source_files import open_without_waiting

#: Names of torch's log files; other files of a folder are not read.
NAME = re.compile(r"dedicated_log_torch_trace.*|.*\.log(?:\.gz|\.zst)?")
RANK = re.compile(r"dedicated_log_torch_trace_rank_(\d{1,9})_")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: Reading a compressed file stops after this many bytes and this many times its own size. Logs compress by a factor
#: of ten to thirty.
MAX_UNPACKED, MAX_RATIO = 256 << 20, 250
#: Bytes at the start of logs that are compared first, and those that are read at once then.
PIECE, BLOCK = 4 << 10, 1 << 17


@dataclass(frozen=True)
class LogFile:
    """One log."""

    path: Path
    size: int
    changed_ns: int

    @property
    def rank(self) -> int | None:
        """The rank in its name."""
        found = RANK.match(self.path.name)
        return int(found[1]) if found else None

    def as_json(self) -> list[Any]:
        """Return the fields as JSON values, the path first."""
        return [str(self.path.absolute()), self.size, self.changed_ns]

    @classmethod
    def from_json(cls, stored: list[Any]) -> LogFile:
        """Make the log that `as_json` returned."""
        path, size, changed_ns = stored
        return cls(Path(path), size, changed_ns)


def find_logs(paths: Iterable[str | os.PathLike[str]]) -> list[LogFile]:
    """Return the logs that `paths` name: files of any name; in folders, at any depth, those named like logs.

    Each log once. CompilediagError for a path that does not exist, can't be read, or contains no logs.
    """
    found: dict[str, Path] = {}
    for given in map(Path, paths):
        if given.is_file():
            logs = [given]
        elif given.is_dir():
            logs = sorted(walk_logs(given))
        else:
            raise CompilediagError(f"{given} does not exist")
        if not logs:
            raise CompilediagError(f"{given} contains no logs; run the program with TORCH_TRACE={given} to write them")
        for log in logs:
            found.setdefault(os.path.realpath(log), log)
    if not found:
        raise CompilediagError("no logs given; pass a log file, or the folder that TORCH_TRACE names")
    files = []
    for path in found.values():
        with open_log(path):
            status = path.stat()
            files.append(LogFile(path, status.st_size, status.st_mtime_ns))
    return files


def walk_logs(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, at any depth, that are named like logs."""
    for base, _, names in os.walk(folder):
        yield from (Path(base, name) for name in names if NAME.fullmatch(name) and Path(base, name).is_file())


class LogStream:
    """A log that is read from its start, unpacked if it is compressed.

    `position`: bytes of the file that were read. `stopped`: why the rest of a compressed file was not read.
    """

    def __init__(self, path: Path):
        self._file = open(path, "rb", opener=open_without_waiting)  # noqa: SIM115
        try:
            self._unpacked, self._errors = _make_unpacker(self._file, path)
        except BaseException:
            self._file.close()
            raise
        # `read` of a truncated gzip file loses what came before the end.
        self._read = getattr(self._unpacked, "read1", self._unpacked.read)
        self.is_compressed = self._unpacked is not self._file
        self._given = 0
        self.position = 0
        self.stopped: str | None = None

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        if self.stopped:
            return b""
        try:
            data: bytes = self._read(size)
        except self._errors as error:
            self.stopped = f"damaged compressed data: {error}"
            return b""
        self.position = self._file.tell()
        self._given += len(data)
        if self.is_compressed and self._given > max(MAX_UNPACKED, MAX_RATIO * self.position):
            self.stopped = f"unpacks to more than {MAX_RATIO} times its size"
            return b""
        return data

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> LogStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_log(path: Path) -> LogStream:
    """Open a log. CompilediagError, in one line, if that fails."""
    try:
        return LogStream(path)
    except OSError as error:
        raise CompilediagError(f"{path} can't be read: {error.strerror}") from None


def _make_unpacker(file: BinaryIO, path: Path) -> tuple[Any, tuple[type[BaseException], ...]]:
    """Return the reader of a file's unpacked bytes, and what it raises for damaged ones."""
    magic = file.read(4) or b""
    file.seek(0)
    if magic.startswith(GZIP):
        return gzip.GzipFile(fileobj=file), (EOFError, OSError, zlib.error)
    if magic != ZSTD:
        return file, ()
    for name in ("compression.zstd", "zstandard"):
        try:
            zstd = importlib.import_module(name)
        except ImportError:
            continue
        if name == "zstandard":
            return zstd.ZstdDecompressor().stream_reader(file, read_across_frames=True), (zstd.ZstdError,)
        return zstd.ZstdFile(file), (EOFError, zstd.ZstdError)
    raise CompilediagError(f"{path} is compressed with zstd: pip install zstandard, or unpack it first")


def separate_copies(logs: list[LogFile]) -> tuple[list[LogFile], list[LogFile]]:
    """Return (logs to read, logs whose bytes are the start of another one's, even if compressed or truncated).

    Of logs that are the same the first is read. An empty log is no copy. Only logs whose first piece is another log's
    too are read to their end: once, and once more to find out how long a compressed one is.
    """
    alike: dict[bytes, list[LogFile]] = defaultdict(list)
    for log in logs:
        with open_log(log.path) as stream:
            alike[b"".join(_read_bytes(stream, PIECE))].append(log)
    ordered = sorted(alike)
    # In a sorted list, what a text is the start of comes right behind it.
    starts = {first for first, second in pairwise(ordered) if second.startswith(first)}
    copies: set[Path] = set()
    for piece, same in alike.items():
        if len(piece) == PIECE:
            copies.update(_find_copies(same) if same[1:] else ())
        elif piece:
            copies.update(log.path for log in same[0 if piece in starts else 1 :])
    return [log for log in logs if log.path not in copies], [log for log in logs if log.path in copies]


def _find_copies(logs: list[LogFile]) -> Iterator[Path]:
    """Find the logs whose bytes are the start of another one's; of those that are the same, all but the first."""
    lengths = sorted({_measure(log) for log in logs})
    digests = {log.path: list(_digest_starts(log, lengths)) for log in logs}
    found = {digest for of_log in digests.values() for digest in of_log[:-1]}
    for path, of_log in digests.items():
        whole = of_log[-1:]  # None of one that was cut off meanwhile.
        if whole and found.issuperset(whole):
            yield path
        found.update(whole)


def _measure(log: LogFile) -> int:
    """The length of a log in bytes, once it is unpacked."""
    with open_log(log.path) as stream:
        return sum(map(len, _read_bytes(stream, sys.maxsize))) if stream.is_compressed else log.size


def _digest_starts(log: LogFile, lengths: list[int]) -> Iterator[bytes]:
    """Yield a digest of the first bytes of a log for each of these lengths, in order, that it has."""
    hashed, at = hashlib.blake2b(digest_size=16), 0
    with open_log(log.path) as stream:
        for length in lengths:
            for data in _read_bytes(stream, length - at):
                hashed.update(data)
                at += len(data)
            if at < length:
                return
            yield hashed.digest()


def _read_bytes(stream: LogStream, count: int) -> Iterator[bytes]:
    """Read so many bytes, fewer at the end of the log, in blocks."""
    while count and (data := stream.read(min(count, BLOCK))):
        yield data
        count -= len(data)


# Progress

#: Seconds until the bar is first drawn, and between two drawings.
PATIENCE_S, INTERVAL_S = 1.0, 0.1
WIDTH = 30


class ProgressBar:
    """Bytes read of `total`, on stderr."""

    def __init__(self, total: int):
        self._total = total
        self._begin = time.monotonic()
        self._due = self._begin + PATIENCE_S
        self._is_shown = False
        self._is_on = sys.stderr is not None and sys.stderr.isatty()

    def show(self, done: int, what: str) -> None:
        """Draw the bar if it is due: `done` bytes are read, `what` is being read now."""
        if not self._is_on or (now := time.monotonic()) < self._due:
            return
        self._due, self._is_shown = now + INTERVAL_S, True
        share = min(done / self._total, 1.0) if self._total else 1.0
        bar = "█" * round(share * WIDTH)
        left = (now - self._begin) * (1 - share) / share if share else 0.0
        read = f"{format_bytes(done)} of {format_bytes(self._total)}"
        line = f"{format_share(share)} {bar:░<{WIDTH}} {read}, {format_seconds(left)} left"
        print(f"\r\x1b[K{line}  {what}"[:200], end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Remove the bar."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
