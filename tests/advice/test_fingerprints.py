"""The fingerprints of known programs are the same after 100 lines above and in another folder."""

from collections import Counter

import pytest

from tests.advice.known_programs import load_programs
from tests.advice.runs import get_worker

#: Every one of these programs; with 1, all of them.
EVERY = 8


@pytest.mark.parametrize("program", load_programs()[::EVERY], ids=lambda program: program.name)
def test_a_program_that_was_moved_has_the_same_fingerprints(program):
    worker = get_worker(program.worker)
    moved = worker.folder / "moved" / program.path.name
    moved.parent.mkdir(exist_ok=True)
    moved.write_text("# a line\n" * 100 + program.source)
    runs = [worker.run(path, program.backend, diagnose=True) for path in (program.path, moved)]
    before, after = (Counter(finding["fingerprint"] for finding in run["findings"]) for run in runs)
    assert before == after and set(before.values()) <= {1}
