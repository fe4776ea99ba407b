"""The texts of artifacts as a session file stores them: each once, under a digest, as a zlib stream."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

#: Texts up to this number of bytes are stored uncompressed.
SHORT = 5 * 1024
#: Longer texts are not unpacked: a log's record has at most 64 MB.
MAX_TEXT = 128 << 20


def clean(text: str) -> str:
    """The text as SQLite can store it: a lone surrogate, which UTF-8 cannot encode, becomes its escape."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def deflate(data: bytes) -> bytes:
    """The UTF-8 of a text as a zlib stream; a short one is a stored block, without compression.

    zlib releases the interpreter lock for each text, and while the compiler is busy it takes 5 ms to get it back. Most
    texts are graphs of a few kB, and compressing those took longer than all other writing. (Up to `SHORT` bytes adler32
    keeps the lock.)
    """
    if len(data) > SHORT:
        return zlib.compress(data, 1)
    head = struct.pack("<BBBHH", 0x78, 0x01, 0x01, len(data), len(data) ^ 0xFFFF)
    return head + data + struct.pack(">I", zlib.adler32(data))


def make_valid(text: bytes) -> bytes:
    """Return the text as valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace").encode()
    return text


def unpack(body: bytes, most: int) -> bytes:
    """The data of a zlib stream, which somebody else may have made. zlib.error if it is damaged or has more than `most`
    bytes: a few kB can unpack to gigabytes.
    """
    stream = zlib.decompressobj()
    data = stream.decompress(body, most)
    if not stream.eof:
        is_long = len(data) >= most
        raise zlib.error(f"it unpacks to more than {most >> 20} MB" if is_long else "incomplete or truncated stream")
    return data


def unpack_start(body: bytes, size: int) -> bytes:
    """The first `size` bytes of a zlib stream. zlib.error if they are damaged."""
    return zlib.decompressobj().decompress(body, size)


def inflate(body: bytes, most: int = MAX_TEXT) -> str:
    """The text of a zlib stream. zlib.error if it is damaged or has more than `most` bytes."""
    return unpack(body, most).decode()


def digest_of(text: str) -> str:
    """Key of a text: its length and Python's own 64-bit hash, which unlike those of hashlib keeps the interpreter lock.

    The key of a text differs between processes, so that several processes may store the same text.
    """
    return f"{hash(text) & 0xFFFF_FFFF_FFFF_FFFF:016x}{len(text):x}"


class KeptText(NamedTuple):
    """What a recording does with a text: its digest (None: not kept), its bytes, and whether it is stored now."""

    digest: str | None
    size: int
    is_new: bool


class TextQuota:
    """Which texts a recording keeps: each is stored once, as far as they fit into `size` bytes."""

    def __init__(self, size: int):
        self._left = size
        self._digests: set[str] = set()

    def take(self, text: str) -> KeptText:
        """Keep a text, if it fits."""
        size = len(text) if text.isascii() else len(text.encode())
        digest = digest_of(text)
        if digest in self._digests:
            return KeptText(digest, size, is_new=False)
        if size > self._left:
            return KeptText(None, size, is_new=False)
        self._left -= size
        self._digests.add(digest)
        return KeptText(digest, size, is_new=True)

    def give_back(self, texts: Iterable[tuple[str, str]]) -> None:
        """These (digest, text) pairs could not be stored."""
        for digest, text in texts:
            self._digests.discard(digest)
            self._left += len(text)
