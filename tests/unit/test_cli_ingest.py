"""`compilediag ingest` as a user calls it."""

import pytest

import compilediag as cd

from .log_builder import compile_, golden


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_bytes(golden())
    return folder


def test_it_writes_a_session_and_says_what_was_read(python, logs, tmp_path):
    out = tmp_path / "run.cdiag"
    done = python("-m", "compilediag", "ingest", logs, "-o", out, "--strict")
    assert done.returncode == 0, done.stderr
    assert "compilediag: ingested from 1 file: " in done.stderr and f"wrote {out}" in done.stderr and not done.stdout
    assert len(cd.load(out).compiles) > 20
    assert python("-m", "compilediag", "ingest", logs, "-o", out, "--quiet").stderr == ""


def test_it_starts_without_what_only_tables_need(python, logs, tmp_path):
    """pandas takes longer to import than a log of a few MB to read."""
    arguments = ["ingest", str(logs), "-o", str(tmp_path / "run.cdiag"), "--quiet"]
    done = python("-c", f"import sys, compilediag.cli as cli; cli.main({arguments}); print('pandas' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


def test_strict_fails_and_the_default_says_so(python, logs, tmp_path):
    (logs / "b.log").write_text(compile_() + "something else\n")
    done = python("-m", "compilediag", "ingest", logs, "-o", tmp_path / "run.cdiag")
    assert done.returncode == 0 and "1 unread (1x no log line)" in done.stderr
    done = python("-m", "compilediag", "ingest", logs, "-o", tmp_path / "run.cdiag", "--strict")
    assert done.returncode == 1 and done.stderr.startswith("compilediag: could not read everything: 1x no log line")


def test_what_is_wrong_with_the_arguments_is_one_line(python, logs, tmp_path):
    for arguments in ([tmp_path / "none", "-o", tmp_path / "a.cdiag"], [logs, "-o", tmp_path / "no" / "a.cdiag"]):
        done = python("-m", "compilediag", "ingest", *arguments)
        assert done.returncode == 2 and done.stderr.startswith("compilediag: ") and done.stderr.count("\n") == 1
