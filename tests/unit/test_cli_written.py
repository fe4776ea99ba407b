"""Commands that write a file say which, on stderr: their output stays what they print for other programs."""

import pytest

from compilediag.cli import main

from .session_builder import saved
from .tables_builder import compiled, sizes


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["report", "{session}", "-o", "{file}"], "out.html"),
        (["export", "{session}", "-o", "{file}"], "out.json"),
        (["export", "{session}", "-o", "{file}", "--format", "csv"], "tables"),
        (["diff", "{session}", "{session}", "--report", "{file}"], "diff.html"),
        (["check", "{session}", "--max-recompiles", "9", "--report", "{file}"], "check.html"),
    ],
)
def test_the_file_that_was_written_is_named(tmp_path, capsys, arguments, name):
    session, file = saved(tmp_path, compiled(), *sizes("4", "6")).path, tmp_path / name
    code = main([part.format(session=session, file=file) for part in arguments])
    assert code == (arguments[0] == "check"), "this session cannot be checked, but its report is written"
    captured = capsys.readouterr()
    assert captured.err == f"compilediag: wrote {file}\n" and file.exists() and "wrote" not in captured.out


def test_doctor_aligns_its_sources(capsys):
    assert main(["doctor"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("source ")]
    starts = {row.index(row.split()[2]) for row in rows}
    assert len(rows) > 10 and len(starts) == 1
