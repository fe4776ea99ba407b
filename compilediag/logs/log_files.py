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
from typing import Any, BinaryIO, Literal

from ..errors import CompilediagError
from ..source_files import open_without_waiting

#: Names of torch's log files; other files of a folder are not read.
NAME = re.compile(r"dedicated_log_torch_trace.*|.*\.log(?:\.gz|\.zst)?")
RANK = re.compile(r"dedicated_log_torch_trace_rank_(\d{1,9})_")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: Reading a compressed file stops after this many bytes and this many times its own size. Logs compress by a factor
#: of ten to thirty.
MAX_UNPACKED, MAX_RATIO = 256 << 20, 250
BLOCK = 1 << 20


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
            logs = sorted(_walk_logs(given))
        else:
            raise CompilediagError(f"{given} does not exist")
        if not logs:
            raise CompilediagError(f"{given} contains no logs; run the program with TORCH_TRACE={given} to write them")
        for log in logs:
            found.setdefault(os.path.realpath(log), log)
    if not found:
        raise CompilediagError("no logs given; pass a log file, or the folder that TORCH_TRACE names")
    return [_make_log(path) for path in found.values()]


def _walk_logs(folder: Path) -> Iterator[Path]:
    for base, _, names in os.walk(folder):
        yield from (Path(base, name) for name in names if NAME.fullmatch(name) and Path(base, name).is_file())


def _make_log(path: Path) -> LogFile:
    with open_log(path):
        status = path.stat()
        return LogFile(path, status.st_size, status.st_mtime_ns)


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
    """Return (logs to read, logs that are copies of one of them, even if compressed or truncated)."""
    by_begin: dict[bytes, list[LogFile]] = defaultdict(list)
    for log in logs:
        with open_log(log.path) as stream:
            by_begin[_read_begin(stream)].append(log)
    copies = [copy for begin, alike in by_begin.items() if begin for copy in _find_copies(alike)]
    return [log for log in logs if log not in copies], copies


def _read_begin(stream: LogStream) -> bytes:
    """Return the first line of a log, at most 1000 bytes of it."""
    begin = b""
    while len(begin) < 1000 and b"\n" not in begin and (more := stream.read(4096)):
        begin += more
    return begin.partition(b"\n")[0][:1000]


def _find_copies(alike: list[LogFile]) -> list[LogFile]:
    """Return the logs whose bytes are the start of another one's; of two that are the same the later one."""
    copies: list[LogFile] = []
    for number, log in enumerate(alike):
        for other_number, other in enumerate(alike):
            if other is log or other in copies:
                continue
            shorter = _find_shorter(log, other)
            if shorter == "first" or (shorter == "same" and other_number < number):
                copies.append(log)
                break
    return copies


def _find_shorter(first: LogFile, second: LogFile) -> Literal["first", "second", "same"] | None:
    """Return which of two logs is the start of the other; None if neither is."""
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
