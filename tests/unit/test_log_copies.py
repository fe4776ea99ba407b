"""Which logs are copies of others, and what finding that out reads."""

import gzip
import random

import pytest

from compilediag.logs import log_files

FIRST_LINE = b'V1123 12:00:00.000000 100 torch/a.py:1] {"str": ["train.py", 0]}\n'


@pytest.fixture
def reads(monkeypatch):
    """Bytes that each opened log has given, one number per log that was opened."""
    given = []

    class Counted(log_files.LogStream):
        def __init__(self, path):
            super().__init__(path)
            self.number = len(given)
            given.append(0)

        def read(self, size, /):
            data = super().read(size)
            given[self.number] += len(data)
            return data

    monkeypatch.setattr(log_files, "LogStream", Counted)
    return given


def write_logs(folder, bodies):
    folder.mkdir()
    for number, body in enumerate(bodies):
        (folder / f"{number:05d}.log").write_bytes(body)
    return log_files.find_logs([folder])


def find_copies_slowly(bodies):
    """Numbers of the bodies that are the start of another one; of equal ones all but the first."""

    def is_copy(number, body):
        others = [(n, other) for n, other in enumerate(bodies) if n != number and other.startswith(body)]
        return bool(body) and any(len(other) > len(body) or n < number for n, other in others)

    return [number for number, body in enumerate(bodies) if is_copy(number, body)]


@pytest.mark.parametrize("seed", range(12))
def test_every_copy_is_found(tmp_path, seed):
    random_ = random.Random(seed)
    texts = [FIRST_LINE * random_.choice([1, 80, 200])]
    piece = log_files.PIECE
    lengths = [0, 1, 10, piece - 1, piece, piece + 1, 2 * piece, 3 * piece - 1, 3 * piece]
    for _ in range(25):
        base = random_.choice(texts)
        cut = base[: random_.choice([*lengths, len(base), random_.randrange(len(base) + 1)])]
        letters = bytes([random_.randrange(65, 68)]) * random_.choice(lengths)
        texts.append(cut + random_.choice([b"", b"", b"x", letters]))
    random_.shuffle(texts)
    written = [gzip.compress(text) if text and random_.random() < 0.3 else text for text in texts]
    kept, copies = log_files.separate_copies(write_logs(tmp_path / "logs", written))
    assert [int(log.path.stem) for log in copies] == find_copies_slowly(texts)
    assert len(kept) + len(copies) == len(texts)


SHAPES = {
    "the same first line": lambda n: [FIRST_LINE + b"%d\n" % i * 300 for i in range(n)],
    "the same start": lambda n: [FIRST_LINE * 300 + b"%d\n" % i * 300 for i in range(n)],
    "copies": lambda n: [FIRST_LINE * 300] * n,
    "truncated copies": lambda n: [(FIRST_LINE * 300)[: 1000 + 7 * i] for i in range(n)],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [20, 300])
def test_what_is_read_is_proportional_to_the_logs(tmp_path, reads, shape, count):
    logs = write_logs(tmp_path / "logs", SHAPES[shape](count))
    reads.clear()
    log_files.separate_copies(logs)
    assert len(reads) <= 3 * count
    assert sum(reads) <= 3 * sum(log.size for log in logs)
