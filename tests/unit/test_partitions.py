"""Parquet partitions: the session that they give, what is done again, what can't be read."""

import json
import os

import pandas as pd
import pytest

import compilediag as cd
from compilediag.errors import CompilediagError
from compilediag.events import BY_TABLE
from compilediag.logs.log_files import find_logs
from tests.inside import dask

from .log_builder import compile_, golden

parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, data in enumerate([golden(), compile_(pid=7).encode() + b"no log line\n", b""]):
        (folder / f"dedicated_log_torch_trace_rank_{number}_x.log").write_bytes(data)
    return folder


def read_all(logs, folder):
    """What the workers of a cluster do, here and one after the other; the numbers that were read."""
    found = find_logs([logs])
    done = dask.prepare_folder(folder, found)
    left = [number for number in range(len(found)) if number not in done]
    for number in left:
        log = found[number]
        answer = dask.read_partition(str(log.path), log.size, log.changed_ns, number, str(folder))
        assert "tally" in answer, answer
    return left


def test_partitions_are_the_session_that_ingestion_gives(logs, tmp_path):
    assert read_all(logs, tmp_path / "parts") == [0, 1, 2]
    session, whole = cd.load(tmp_path / "parts"), cd.ingest(logs)
    for name in BY_TABLE:
        frames = [getattr(one, name) for one in (session, whole)]
        frames = [frame.drop(columns="time") if name == "sources" else frame for frame in frames]
        pd.testing.assert_frame_equal(*frames, obj=name)
    at = whole.artifacts["event_id"]
    assert [session.artifact(one) for one in at] == [whole.artifact(one) for one in at] and len(at) > 100
    assert session.meta["stopped_ns"] == whole.meta["stopped_ns"]
    assert "1x no log line" in session.sources.set_index("name").loc["logs", "reason"]


def test_a_tables_folder_is_a_data_set_of_its_own(logs, tmp_path):
    read_all(logs, tmp_path / "parts")
    compiles = pd.read_parquet(tmp_path / "parts" / "compiles")
    assert len(compiles) == len(cd.load(tmp_path / "parts").compiles) and {"function", "event_id"} <= set(compiles)
    assert not list((tmp_path / "parts").rglob(".*")), "nothing half written is left"


def test_what_is_done_is_not_done_again_and_what_changed_is(logs, tmp_path):
    folder = tmp_path / "parts"
    read_all(logs, folder)
    assert read_all(logs, folder) == []
    (logs / "dedicated_log_torch_trace_rank_1_x.log").write_text(compile_(pid=7) + compile_("1/0", at=5, pid=7))
    assert read_all(logs, folder) == [1]
    (folder / "logs" / "00000.json").write_text("[")
    assert read_all(logs, folder) == [0]
    (logs / "dedicated_log_torch_trace_rank_2_x.log").unlink()
    read_all(logs, folder)
    assert len(list((folder / "logs").iterdir())) == 2, "what is of no log of the job counts no more"
    assert cd.load(folder).compiles["pid"].value_counts()[7] == 2


def test_a_folder_with_something_else_in_it_is_left_alone(logs, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work.txt").write_text("mine")
    with pytest.raises(CompilediagError, match="contains no partitions"):
        read_all(logs, tmp_path / "mine")
    with pytest.raises(CompilediagError, match="can't be written"):
        read_all(logs, tmp_path / "mine" / "work.txt")


@pytest.mark.parametrize("damage", [b"PAR1 not", b""])
def test_a_damaged_partition_is_one_line(logs, tmp_path, damage):
    folder = tmp_path / "parts"
    read_all(logs, folder)
    (folder / "events" / "00000.parquet").write_bytes(damage)
    with pytest.raises(CompilediagError, match="partition 00000 of .* can't be read: [^\n]*$"):
        cd.load(folder)


def test_columns_that_are_lacking_or_not_ours(logs, tmp_path):
    folder = tmp_path / "parts"
    read_all(logs, folder)
    file = folder / "compiles" / "00000.parquet"
    table = parquet.read_table(file)
    parquet.write_table(table.drop_columns(["backend"]).append_column("; DROP TABLE events", table["line"]), file)
    assert cd.load(folder).compiles["backend"].isna().all()
    parquet.write_table(table.drop_columns(["event_id"]), file)
    with pytest.raises(CompilediagError, match="has no column event_id"):
        cd.load(folder)


def test_a_log_or_folder_that_is_gone_is_an_answer(tmp_path):
    answer = dask.read_partition(str(tmp_path / "a.log"), 1, 1, 0, str(tmp_path))
    assert answer == {"error": f"{tmp_path / 'a.log'} can't be read: No such file or directory"}
    (tmp_path / "a.log").write_text(compile_())
    answer = dask.read_partition(str(tmp_path / "a.log"), 1, 1, 0, str(tmp_path / "no"))
    assert "no can't be written" in answer["error"]


@pytest.mark.parametrize("package", ["distributed", "pyarrow"])
def test_a_package_that_is_absent_is_one_line(python_without, logs, tmp_path, package):
    arguments = ["ingest", str(logs), "-o", str(tmp_path / "out"), "--dask", "tcp://127.0.0.1:1"]
    done = python_without({package}, f"import compilediag.cli as cli; raise SystemExit(cli.main({arguments}))")
    assert f'{package}: pip install "compilediag[dask]"' in done.stderr
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_partitions_can_not_be_read_without_pyarrow(python_without, logs, tmp_path):
    read_all(logs, tmp_path / "parts")
    code = f"import compilediag as cd\ntry:\n    cd.load({str(tmp_path / 'parts')!r})\nexcept Exception as e: print(e)"
    assert "partitions need the package pyarrow: pip install" in python_without({"pyarrow"}, code).stdout


def test_marks_record_what_was_read(logs, tmp_path):
    read_all(logs, tmp_path / "parts")
    mark = json.loads((tmp_path / "parts" / "logs" / "00001.json").read_text())
    assert mark["tally"]["unread"] == {"no log line": 1} and mark["log"].endswith("rank_1_x.log")


def test_a_cluster_needs_a_folder(logs):
    with pytest.raises(CompilediagError, match="needs a folder that its workers can write to"):
        cd.ingest(logs, dask="tcp://127.0.0.1:1")


@pytest.mark.parametrize("name", ["logs/00000.json", "events/00000.parquet"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_not_a_regular_file_is_not_read(logs, tmp_path, name, kind):
    folder = tmp_path / "parts"
    read_all(logs, folder)
    file = folder / name
    file.rename(tmp_path / "moved")
    {"link": lambda: file.symlink_to(tmp_path / "moved"), "pipe": lambda: os.mkfifo(file), "folder": file.mkdir}[kind]()
    with pytest.raises(CompilediagError, match=r"not a regular file"):
        cd.load(folder)


def test_links_are_replaced_and_not_followed(logs, tmp_path):
    folder, outside = tmp_path / "parts", tmp_path / "outside"
    outside.write_text("mine")
    read_all(logs, folder)
    files = [*folder.glob("*/00000.parquet"), folder / "logs" / "00000.json"]
    for file in files:
        file.unlink()
        file.symlink_to(outside)
    assert read_all(logs, folder) == [0]
    assert outside.read_text() == "mine" and not any(file.is_symlink() for file in files)
    files[-1].unlink()
    temporary = files[0].with_name(f".{files[0].name}.{os.getpid()}")
    temporary.symlink_to(outside)
    with pytest.raises(AssertionError, match="can't be written"):
        read_all(logs, folder)
    assert outside.read_text() == "mine"
