"""A session in a folder that cannot be written is shown whole; what would be written there says so in one line."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import compilediag as cd
from compilediag.errors import CompilediagError

from .every_view import list_views
from .hostile_sessions import make_base

#: root may write to any folder, unless it has no such capability.
WITHOUT_RIGHTS = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner"]
#: What writes to the folder of the session.
WRITING = {"report", "diff", "warmup", "sarif", "perfetto", "speedscope", "csv", "parquet", "markdown", "save"}


def list_problems(path, folder):
    """What each view of a session says that is refused; "" for one that is shown."""
    os.makedirs(folder, exist_ok=True)
    problems = {}
    for name, make in list_views(path, folder)[1].items():
        try:
            make()
            problems[name] = ""
        except CompilediagError as error:
            problems[name] = str(error)
    return problems


def main(path, folder, *unread):
    """Print what is refused if views write to another folder, and to that of the session; and of what is not read."""
    from pathlib import Path

    found = [list_problems(Path(path), Path(there)) for there in (folder, os.path.dirname(path))]
    for other in unread:
        try:
            cd.load(other)
            found.append("")
        except CompilediagError as error:
            found.append(str(error))
    print(json.dumps(found))


def keep_rows_beside(file, to):
    """Copy a session with a row that is only in its -wal, and without the file that SQLite makes for it."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("INSERT OR REPLACE INTO meta VALUES ('title', '\"newest\"')")
        db.commit()
        for ending in ("", "-wal"):
            shutil.copy(f"{file}{ending}", f"{to}{ending}")


@pytest.fixture
def run_without_rights():
    prefix = WITHOUT_RIGHTS if os.geteuid() == 0 else []
    if prefix and (
        shutil.which("setpriv") is None or subprocess.run([*prefix, "true"], capture_output=True).returncode
    ):
        pytest.skip("root writes to every folder here: there is no setpriv")

    def run(*arguments):
        command = [*prefix, sys.executable, "-m", "tests.unit.test_read_only", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_a_session_in_a_folder_that_cannot_be_written(tmp_path, run_without_rights):
    folder, out = tmp_path / "kept", tmp_path / "out"
    folder.mkdir()
    session, killed = make_base(folder / "run.cdiag"), folder / "killed.cdiag"
    keep_rows_beside(make_base(tmp_path / "killed.cdiag"), killed)
    assert cd.load(killed).meta["title"] == "newest"  # Where the folder can be written, all of it is read.
    (folder / "killed.cdiag-shm").unlink(missing_ok=True)
    keep_rows_beside(tmp_path / "killed.cdiag", killed)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    try:
        shown, refused, unread = run_without_rights(session, out, killed)
    finally:
        folder.chmod(0o755)
    assert [name for name, problem in shown.items() if problem] == ["speedscope"]  # Nothing was traced.
    assert {name for name, problem in refused.items() if problem} == WRITING
    for problem in refused.values():
        assert "\n" not in problem and "Errno" not in problem and ".compilediag-" not in problem
    assert "killed.cdiag-wal" in unread and "copy both files" in unread
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


if __name__ == "__main__":
    main(*sys.argv[1:])
