"""One case: a spoilt copy of an honest file, made from a seed, and some commands that are run on it."""

import functools
import gzip
import random
import shutil

from ..unit.hostile_sessions import GOLDEN, make_base
from .commands import find_problems, list_commands
from .spoilt_files import spoil_bytes, spoil_cells, spoil_log

#: Ways to spoil, and how often each is chosen.
WAYS = ("cells", "cells", "cells", "bytes", "bytes", "log", "log", "log")


class Originals:
    """The honest files, in a folder that stays."""

    def __init__(self, folder):
        self.base = folder / "base.cdiag"
        if not self.base.exists():
            make_base(self.base)
        self.golden = GOLDEN / "schema-11.cdiag"
        self.logs = sorted(log for log in GOLDEN.glob("*.log.gz") if log.stat().st_size < 100_000)

    @functools.cached_property
    def sessions(self):
        return [self.base, self.golden]


def make_case(seed, originals, folder, way=None):
    """Write the spoilt file of a seed to an empty folder; its path."""
    random_ = random.Random(seed)
    way = way or random_.choice(WAYS)
    if way == "log":
        name, data = spoil_log(random_, gzip.decompress(random_.choice(originals.logs).read_bytes()))
        file = folder / name
        file.write_bytes(data)
        return file
    original = originals.base if way == "cells" else random_.choice(originals.sessions)
    file = folder / "a.cdiag"
    shutil.copyfile(original, file)
    if way == "bytes":
        file.write_bytes(spoil_bytes(random_, file.read_bytes()))
    else:
        spoil_cells(random_, file)
    return file


def run_case(seed, originals, folder, way=None, amount=None):
    """(arguments, problem) of each thing that is wrong with the commands of one seed. `amount`: how many of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = make_case(seed, originals, folder, way)
    _add_rank(file, originals, folder / "ranks")
    commands = list_commands(file, originals.base, folder)
    if amount is not None:
        commands = random.Random(seed).sample(commands, amount)
    return [(arguments, problem) for arguments in commands for problem in find_problems(arguments)]


def _add_rank(file, originals, ranks):
    """A folder of a job's sessions, one of which is the spoilt one."""
    ranks.mkdir()
    shutil.copyfile(originals.base, ranks / "rank-0.cdiag")
    shutil.copyfile(file, ranks / "rank-1.cdiag")
