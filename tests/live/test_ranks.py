"""Two ranks of a real job, watched into one folder and logged by TORCH_TRACE: both say where they parted."""

import platform
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
import torch

import compilediag as cd
from tests import inside

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run_two_ranks(program_server):
    """Runs both ranks of a program to their end; they meet at `meeting` and record to `watched` in a folder."""

    def run(program, folder, environments):
        def run_rank(rank):
            command = ("-m", program, str(rank), folder / "meeting", f"{folder / 'watched'}/")
            return program_server.run(*command, env=environments[rank], cwd=ROOT)

        with ThreadPoolExecutor(2) as pool:
            ranks = [*pool.map(run_rank, (0, 1))]
        assert [rank.returncode for rank in ranks] == [0, 0], [rank.stderr for rank in ranks]

    return run


@pytest.fixture(scope="module")
def job(run_two_ranks, tmp_path_factory):
    """The folder of one run: `watched` and `logs` in it."""
    folder = tmp_path_factory.mktemp("job")
    environment = {"TORCH_TRACE": str(folder / "logs"), "COMPILEDIAG_HISTORY": "off"}
    run_two_ranks("tests.live.two_ranks", folder, [environment, environment])
    return folder


@pytest.mark.since_torch("2.15", "ranks do not agree on what their caches had")
def test_a_hit_that_another_rank_lacks_is_a_miss(run_two_ranks, tmp_path):
    caches = [{"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / f"cache{rank}")} for rank in (0, 1)]
    run_two_ranks("tests.live.ranks_share_hits", tmp_path, caches)
    lookups = cd.load(tmp_path / "watched").cache_lookups.query("cache == 'aot_autograd' and action == 'look_up'")
    first, second = (group.astype(object).to_dict("records") for _, group in lookups.groupby("rank"))
    assert [row["outcome"] for row in (*first, *second)] == ["miss"] * 4
    assert "another rank found none" in first[1]["reason"]
    assert not [row for row in (first[0], *second) if "another rank" in str(row["reason"])]


def test_a_rank_with_cold_caches_is_named_and_one_that_fills_a_cache_is_not(run_two_ranks, tmp_path):
    def run(name, *caches):
        folder = tmp_path / name
        folder.mkdir()
        environments = [{"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / cache)} for cache in caches]
        run_two_ranks("tests.live.ranks_multiply", folder, environments)
        session = cd.load(folder / "watched")
        return [finding for finding in session.findings() if finding.rule == "ranks_cold_caches"]

    assert run("first", "one", "two") == []  # Both are cold.
    (cold,) = run("second", "one", "three")
    assert cold.count == 1 and "rank 1 compiles 1 graph that rank 0 found" in cold.title
    assert cold.function and cold.evidence


@pytest.mark.long("two ranks that compile with Inductor, three times")
def test_a_warm_up_script_for_ranks_saves_the_artifacts_of_each_and_ends_them_together(
    run_two_ranks, program_server, forked_commands, tmp_path
):
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    run_two_ranks("tests.live.ranks_multiply", recorded, [{"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "one")}] * 2)
    script = tmp_path / "warmup.py"
    assert cd.load(recorded / "watched").warmup(script, distributed=True) == script
    launch = ("-m", "torch.distributed.run", "--nproc-per-node", "2", script)
    program = (Path(__file__).with_name("ranks_multiply.py"), "0", tmp_path / "meeting", f"{tmp_path / 'again'}/")
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "two"), "ENDLESS": "1", "PYTHONPATH": str(ROOT)}
    done = program_server.run(*launch, *program, env=variables, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr.count("saved the artifacts of 1 function") == 2, done.stderr
    loaded = tmp_path / "loaded"
    loaded.mkdir()
    artifacts = str(tmp_path / "warmup.{rank}.artifacts")
    environments = [{"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / f"new{n}"), "LOAD": artifacts} for n in (0, 1)]
    run_two_ranks("tests.live.ranks_multiply", loaded, environments)
    lookups = cd.load(loaded / "watched").cache_lookups.query("cache == 'aot_autograd' and action == 'look_up'")
    assert sorted(lookups[["rank", "outcome"]].values.tolist()) == [[0, "hit"], [1, "hit"]]


@pytest.fixture(scope="module")
def both(job):
    """(session of the watches, session of the logs)."""
    return cd.load(job / "watched"), cd.ingest(job / "logs", strict=True)


def test_the_first_difference_is_the_same_for_both(both):
    live, log = (session.ranks() for session in both)
    assert live.first.sentence == log.first.sentence
    assert live.first.sentence.startswith("rank 1 diverged at 0/2 of step (two_ranks.py:16), ")
    assert "guard x.shape[0] 8 -> 9; rank 0 had entries 0/0 for 4, 0/1 for 8 and continued with 1/0 of scale" in (
        live.first.sentence
    )
    for ranks in (live, log):
        assert (ranks.first.kind, ranks.first.ranks, ranks.first.value) == ("way", (1,), "9")
        assert ranks.first.other_value == "0/0 for 4, 0/1 for 8" and len(ranks.divergences) == 1


def test_both_sessions_have_the_same_rows(both):
    names = ["rank", "pid", "time", "compile_id", "function", "line", "trigger", "is_recompile", "outcome"]
    live, log = (session.compiles[names].sort_values(["rank", "time"], ignore_index=True) for session in both)
    pd.testing.assert_frame_equal(live, log)
    assert live.groupby("rank").size().tolist() == [3, 5]
    graphs = [session.ranks().graphs.drop(columns="file") for session in both]
    pd.testing.assert_frame_equal(*graphs, check_exact=False, rtol=1e-3)
    assert {"ranks_diverge"} <= {f.rule for f in both[0].findings()} & {f.rule for f in both[1].findings()}


def test_what_was_recorded_before_the_job_began_has_its_rank_too(both, job):
    live = both[0]
    named = sorted(file.name for file in (job / "watched").iterdir())
    assert named == sorted(f"{platform.node()}-{pid}.cdiag" for pid in live.compiles["pid"].unique())
    events = live.events[live.events["kind"] != "source"]
    assert set(events["rank"]) == {0, 1} and events["rank"].notna().all()
    assert live.artifact(live.artifacts["event_id"].iloc[-1]) and len(live.artifacts) > 20


def test_a_folder_is_opened_by_the_commands_too(job, tmp_path, capsys):
    assert inside.main(["report", job / "watched", "-o", tmp_path / "report.html"]) == 0
    assert "rank 1 diverged" in inside.read_page(tmp_path / "report.html")
    for command in (["diff", job / "watched", job / "logs"], ["ranks", job / "logs"]):
        assert inside.main(command) == 0
    out = capsys.readouterr().out
    assert "compiles 8 -> 8" in out and "2 ranks. First difference:\n  rank 1 diverged" in out


def test_the_launchers_variable_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    with cd.watch(path=f"{tmp_path / 'new'}/"):
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["rank-3.cdiag"]
    assert set(cd.load(tmp_path / "new").compiles["rank"]) == {3}
    with cd.watch(path=tmp_path / "new") as again:
        pass
    assert again.path == tmp_path / "new" / "rank-3.cdiag" and len(cd.load(tmp_path / "new").compiles) == 0


def test_torch_distributed_that_is_half_imported_has_no_rank(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setitem(sys.modules, "torch.distributed", types.ModuleType("torch.distributed"))
    assert inside.read_rank() is None
    monkeypatch.setenv("RANK", "7")
    assert inside.read_rank() == 7
    monkeypatch.setenv("RANK", "first")
    assert inside.read_rank() is None


def test_a_script_that_is_run_under_a_launcher_is_recorded_into_a_folder(program_server, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\ntorch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))\n")
    for rank, folder in enumerate(("ranks/", "ranks")):
        command = ["-m", "compilediag", "run", "--quiet", "--save", folder, script]
        done = program_server.run(*command, env={"RANK": str(rank)}, cwd=tmp_path)
        assert done.returncode == 0 and done.stderr == "", done.stderr
    assert cd.load(tmp_path / "ranks").compiles["rank"].tolist() == [0, 1]
