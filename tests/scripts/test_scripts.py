"""`compilediag fix --fast` on whole scripts: as good as the change by hand, and counted with torch alone.

Where a package is missing its scripts are skipped; `make test-libraries` has all of them. What fix does not reach yet
has its reason in truth.toml and has to fail, so that it is noticed when it works.
"""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from tests.loading import load_script

measure = load_script(Path(__file__).with_name("measure.py"))
#: What `make test` runs.
QUICK = ("experts", "padded_classifier")


def list_scripts():
    for row in measure.read_truth():
        missing = ", ".join(name for name in row.packages if importlib.util.find_spec(name) is None)
        marks = [pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}; see `make test-libraries`")]
        marks += [] if row.name in QUICK else [pytest.mark.long("searches a whole script, see `make test-libraries`")]
        marks += [pytest.mark.xfail(reason=row.not_reached, strict=True)] if row.not_reached else []
        yield pytest.param(row, id=row.name, marks=marks)


@pytest.mark.parametrize("row", [*list_scripts()])
def test_fix_reaches_what_was_done_by_hand(row, program_server, forked_commands, tmp_path):
    copy = shutil.copytree(row.folder, tmp_path / row.name)
    done = program_server.run("-m", "compilediag", "fix", "--fast", "--json", row.start, *row.arguments, cwd=copy)
    found = json.loads(done.stdout)
    assert found["problem"] is None and measure.reaches_hand(row, found)
    if row.kind != "fixable":
        assert found["patch"] == "" and (found["exit_code"] == 0 or row.kind == "needed")
        return
    patch = tmp_path / "fix.patch"
    patch.write_text(found["patch"])
    before, after = measure.measure(row.folder / row.start, row.arguments), measure.measure_changed(row, patch)
    assert (after.exit_code, after.output) == (before.exit_code, before.output)
    found = (after.graph_breaks, after.bypasses, after.recompiles)
    assert found <= (row.graph_breaks_by_hand, row.bypasses_by_hand, row.recompiles_by_hand)
