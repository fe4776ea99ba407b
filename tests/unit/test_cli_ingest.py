"""`compilediag ingest` as a user calls it."""

import pytest

import compilediag as cd
from tests.inside import main

from .log_builder import compile_, golden


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_bytes(golden())
    return folder


def test_it_writes_a_session_and_says_what_was_read(capsys, logs, tmp_path):
    out = tmp_path / "run.cdiag"
    assert main(["ingest", logs, "-o", out, "--strict"]) == 0
    shown = capsys.readouterr()
    assert "compilediag: ingested from 1 file: " in shown.err and f"wrote {out}" in shown.err and not shown.out
    assert len(cd.load(out).compiles) > 20
    assert main(["ingest", logs, "-o", out, "--quiet"]) == 0 and capsys.readouterr().err == ""
    (logs / "b.log").write_text(compile_() + "something else\n")
    assert main(["ingest", logs, "-o", out]) == 0 and "1 unread (1x no log line)" in capsys.readouterr().err
    assert main(["ingest", logs, "-o", out, "--strict"]) == 1
    assert capsys.readouterr().err.startswith("compilediag: could not read everything: 1x no log line")


def test_it_starts_without_what_only_tables_need(python, logs, tmp_path):
    """pandas takes longer to import than a log of a few MB to read."""
    arguments = ["ingest", str(logs), "-o", str(tmp_path / "run.cdiag"), "--quiet"]
    done = python("-c", f"import sys, compilediag.cli as cli; cli.main({arguments}); print('pandas' in sys.modules)")
    assert done.stdout == "False\n", done.stderr
