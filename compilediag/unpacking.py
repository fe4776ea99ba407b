"""Unpacks zlib streams that somebody else may have made: a few kB can unpack to gigabytes."""

from __future__ import annotations

import zlib


def unpack(body: bytes, most: int) -> bytes:
    """The data of a zlib stream. zlib.error if it is damaged or has more than `most` bytes."""
    stream = zlib.decompressobj()
    data = stream.decompress(body, most)
    if not stream.eof:
        is_long = len(data) >= most
        raise zlib.error(f"it unpacks to more than {most >> 20} MB" if is_long else "incomplete or truncated stream")
    return data


def unpack_start(body: bytes, size: int) -> bytes:
    """The first `size` bytes of a zlib stream. zlib.error if they are damaged."""
    return zlib.decompressobj().decompress(body, size)
