"""What a page asks the kernel to write."""

import json
from pathlib import Path

import pytest

import compilediag as cd
from tests import inside
from tests.unit.session_builder import saved
from tests.unit.tables_builder import compiled


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return saved(tmp_path, compiled())


@pytest.mark.parametrize("format", ["html", "cdiag", "markdown", "csv", "parquet", "perfetto"])
def test_each_format_is_written_beside_the_notebook_under_a_free_name(session, tmp_path, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")
    paths = [Path(inside.answer_export(session, format=format, request=7)["path"]) for _ in range(2)]
    assert len({*paths}) == 2 and all(path.exists() and path.parent == tmp_path for path in paths)
    if format == "perfetto":
        assert json.loads(paths[0].read_text())["traceEvents"]
    if format == "cdiag":
        assert len(cd.load(paths[0]).compiles) == len(cd.load(session.path).compiles) == 1
    if format == "html":
        assert paths[0].read_text().startswith("<!doctype html>")


def test_what_cannot_be_written_is_one_line(session):
    answer = inside.answer_export(session, format="docx", request=1)
    assert answer["error"].startswith("unknown format 'docx'") and answer["request"] == 1
    assert "\n" not in answer["error"]
