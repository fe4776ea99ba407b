"""Log files: which of the given paths are logs, how each is unpacked, and which of them are copies."""

from __future__ import annotations

import gzip
import importlib
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import CompilediagError

#: How torch names its files; a directory's other files are no logs.
NAME = re.compile(r"dedicated_log_torch_trace.*|.*\.log(?:\.gz|\.zst)?")
RANK = re.compile(r"dedicated_log_torch_trace_rank_(\d{1,9})_")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: A compressed file that gives more than so many bytes, and so many times its own, is not read to its end. Logs
#: are packed ten to thirty times.
MAX_UNPACKED, MAX_RATIO = 256 << 20, 250
BLOCK = 1 << 20


@dataclass(frozen=True)
class LogFile:
    """One log. `rank` is that of its name."""

    path: Path
    size: int
    changed_ns: int

    @property
    def rank(self) -> int | None:
        found = RANK.match(self.path.name)
        return int(found[1]) if found else None


def find_logs(paths: Iterable[str | os.PathLike[str]]) -> list[LogFile]:
    """The logs that `paths` name: files whatever their name, and in directories, at any depth, those named like logs.

    Each once. CompilediagError for a path that is not there, can't be read, or has no logs in it.
    """
    found: dict[str, Path] = {}
    for given in map(Path, paths):
        logs = [given] if given.is_file() else sorted(_logs_below(given)) if given.is_dir() else None
        if logs is None:
            raise CompilediagError(f"{given} is not there")
        if not logs:
            raise CompilediagError(f"{given} has no logs in it: TORCH_TRACE={given} makes torch write them there")
        for log in logs:
            found.setdefault(os.path.realpath(log), log)
    if not found:
        raise CompilediagError("no logs were given: a file, or the directory that TORCH_TRACE named")
    return [_log(path) for path in found.values()]


def _logs_below(folder: Path) -> Iterator[Path]:
    for base, _, names in os.walk(folder):
        yield from (Path(base, name) for name in names if NAME.fullmatch(name) and Path(base, name).is_file())


def _log(path: Path) -> LogFile:
    with open_log(path):
        status = path.stat()
        return LogFile(path, status.st_size, status.st_mtime_ns)


class LogStream:
    """A log that is read from its beginning, unpacked if need be.

    `position`: bytes of the file that were read. `stopped`: why the rest of a packed file was not read.
    """

    def __init__(self, path: Path):
        self._file = path.open("rb")
        try:
            self._unpacked, self._errors = _unpacker(self._file, path)
        except BaseException:
            self._file.close()
            raise
        # `read` of a gzip file that is cut off loses what came before.
        self._read = getattr(self._unpacked, "read1", self._unpacked.read)
        self._given = 0
        self.stopped: str | None = None

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        if self.stopped:
            return b""
        try:
            data = self._read(size)
        except self._errors as error:
            self.stopped = f"packed data can't be read on: {error}"
            return b""
        self._given += len(data)
        if self._unpacked is not self._file and self._given > max(MAX_UNPACKED, MAX_RATIO * self.position):
            self.stopped = f"unpacks to more than {MAX_RATIO} times its size"
            return b""
        return data

    @property
    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> LogStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_log(path: Path) -> LogStream:
    """Open a log. CompilediagError in one line if it can't be."""
    try:
        return LogStream(path)
    except OSError as error:
        raise CompilediagError(f"{path} can't be read: {error.strerror}") from None


def _unpacker(file: BinaryIO, path: Path) -> tuple[Any, tuple[type[BaseException], ...]]:
    """What gives a file's bytes unpacked, and what it raises of damaged ones."""
    magic = file.read(4)
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
    raise CompilediagError(f"{path} is packed with zstd: pip install zstandard, or unpack it first")


def without_copies(logs: list[LogFile]) -> tuple[list[LogFile], list[LogFile]]:
    """(logs to read, logs that are copies of one of them, packed or cut off perhaps)."""
    by_begin: dict[bytes, list[LogFile]] = defaultdict(list)
    for log in logs:
        with open_log(log.path) as stream:
            by_begin[stream.read(BLOCK).partition(b"\n")[0][:1000]].append(log)
    copies = [copy for begin, alike in by_begin.items() if begin for copy in _copies(alike)]
    return [log for log in logs if log not in copies], copies


def _copies(alike: list[LogFile]) -> list[LogFile]:
    """Those of logs that begin alike whose bytes are the beginning of another's; of two that are the same the later."""
    copies: list[LogFile] = []
    for number, log in enumerate(alike):
        for other_number, other in enumerate(alike):
            if other is log or other in copies:
                continue
            shorter = _shorter(log, other)
            if shorter == "first" or (shorter == "same" and other_number < number):
                copies.append(log)
                break
    return copies


def _shorter(first: LogFile, second: LogFile) -> str | None:
    """Which of two logs is the beginning of the other: "first", "second", "same"; None if neither."""
    with open_log(first.path) as one, open_log(second.path) as two:
        held, other = b"", b""
        while True:
            held, other = held or one.read(BLOCK), other or two.read(BLOCK)
            if not held or not other:
                return "same" if held == other else "first" if not held else "second"
            length = min(len(held), len(other))
            if held[:length] != other[:length]:
                return None
            held, other = held[length:], other[length:]
