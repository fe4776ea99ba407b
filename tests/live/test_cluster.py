"""Ingestion on a real Dask cluster: two workers in processes of their own, on this machine's loopback."""

import pandas as pd
import pytest

import compilediag as cd
from compilediag.errors import CompilediagError
from tests.inside import dask
from tests.unit.log_builder import compile_, golden

distributed = pytest.importorskip("distributed", reason="distributed is not installed")


@pytest.fixture(scope="module")
def address():
    """The scheduler of a cluster with two workers."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as running:
        yield running.scheduler_address


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for rank in range(6):
        log = folder / f"dedicated_log_torch_trace_rank_{rank}_x.log"
        log.write_bytes(golden().replace(b" 4242 ", b" %d " % (100 + rank)))
    return folder


@pytest.mark.long("reads six logs with the processes of a cluster")
def test_it_is_the_session_that_one_process_gives(address, logs, tmp_path):
    session = cd.ingest(logs, tmp_path / "parts", dask=address)
    whole = cd.ingest(logs, processes=1)
    for name in ("compiles", "recompiles", "cache_lookups", "phases", "artifacts"):
        pd.testing.assert_frame_equal(getattr(session, name), getattr(whole, name))
    assert session.compiles["rank"].nunique() == 6 and session.ranks().first is None
    with distributed.Client(address) as client:
        info = client.scheduler_info(n_workers=-1)["workers"]
        assert len(info) == 2 and len({worker["id"] for worker in info.values()}) == 2


@pytest.mark.long("reads six logs with the processes of a cluster")
def test_the_command_goes_on_where_it_was(address, logs, tmp_path, python):
    out = tmp_path / "parts"
    command = ["-m", "compilediag", "ingest", logs, "-o", out, "--dask", address, "--strict"]
    assert python(*command).returncode == 0
    marks = {file.name: file.stat().st_mtime_ns for file in (out / "logs").iterdir()}
    (out / "logs" / "00003.json").unlink()
    done = python(*command)
    assert done.returncode == 0 and "ingested from 6 files" in done.stderr and f"wrote {out}" in done.stderr
    again = {file.name: file.stat().st_mtime_ns for file in (out / "logs").iterdir()}
    assert [name for name in again if again[name] != marks[name]] == ["00003.json"]
    assert len(cd.load(out).compiles) == len(cd.ingest(logs).compiles)


def test_unread_records_fail_a_strict_run(address, logs, tmp_path, python):
    (logs / "b.log").write_text(compile_() + "something else\n")
    done = python("-m", "compilediag", "ingest", logs, "-o", tmp_path / "parts", "--dask", address, "--strict")
    assert done.returncode == 1 and "1x no log line" in done.stderr
    assert len(cd.load(tmp_path / "parts").compiles) > 20


def test_no_scheduler_is_one_line(logs, tmp_path, monkeypatch):
    monkeypatch.setattr(dask, "PATIENCE", "1s")
    with pytest.raises(CompilediagError, match="^no Dask scheduler answers at tcp://127.0.0.1:9: [^\n]*$"):
        cd.ingest(logs, tmp_path / "parts", dask="tcp://127.0.0.1:9")
