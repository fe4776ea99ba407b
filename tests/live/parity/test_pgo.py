"""The profile of an earlier run of the same job: read once, written when it changed."""

import pytest
import torch
from torch._dynamo import pgo

from tests.live import programs

from .assertion import in_parity, observed


@pytest.fixture(autouse=True)
def job(fresh_inductor_cache):
    """A job with a profile of its own on disk; gives the file that it will be in."""
    with torch.compiler.config.patch(job_id="job 7"):
        yield fresh_inductor_cache / "dynamo" / "code_state_job 7_None_.pkl"


def sizes(*numbers):
    """What a function that is compiled anew gives for inputs of these sizes."""
    torch._dynamo.reset()
    compiled = programs.compiled(programs.renamed(lambda x: x.sum() * 2, "summed"))
    return [compiled(torch.ones(n)).item() for n in numbers]


def rows(seen):
    found = seen.session.cache_lookups
    return found[found["cache"] == "pgo"]


def outcomes(seen):
    return rows(seen)["outcome"].tolist()


def test_a_first_run_misses_and_saves_what_it_learnt(job):
    seen = in_parity(lambda: sizes(3, 4))
    assert outcomes(seen) == ["miss", "saved", "saved"]
    assert rows(seen)["key"].unique().tolist() == [pgo.get_cache_key()] and rows(seen)["tier"].unique() == ["local"]
    assert rows(seen)["bytes"].tolist()[-1] == job.stat().st_size
    assert rows(seen)["function"].tolist() == ["summed"] * 3
    assert rows(seen)["compile_id"].tolist() == ["0/0", "0/0", "0/1"]


def test_the_next_run_reads_it_and_compiles_once(job):
    sizes(3, 4)
    size = job.stat().st_size
    seen = in_parity(lambda: sizes(5, 6, 7))
    assert outcomes(seen)[0] == "hit" and rows(seen)["bytes"].tolist()[0] == size
    assert len(seen.metrics) == 1, "the size was known to vary"


def test_without_a_change_nothing_is_written(job):
    sizes(3, 4)
    sizes(3, 4)
    before = job.stat().st_mtime_ns
    seen = in_parity(lambda: sizes(3, 4))
    assert outcomes(seen) == ["hit"] and job.stat().st_mtime_ns == before


def test_without_a_job_there_is_no_profile():
    with torch.compiler.config.patch(job_id=None):
        assert outcomes(in_parity(lambda: sizes(3, 4))) == []


def test_a_profile_that_is_kept_in_memory_alone(job):
    with torch._dynamo.config.patch(automatic_dynamic_local_pgo=False):
        seen = in_parity(lambda: sizes(3, 4))
    assert outcomes(seen) == ["disabled"] * 3 and not job.exists()
    assert rows(seen)["reason"].unique().tolist() == ["automatic_dynamic_local_pgo is off"]


def test_a_profile_on_a_server(job, redis_server):
    """The server's answers are those of the remote caches; its own account of them is the measure."""
    with torch._dynamo.config.patch(automatic_dynamic_local_pgo=False, automatic_dynamic_remote_pgo=True):
        first = in_parity(lambda: sizes(3, 4))
        again = in_parity(lambda: sizes(5, 6))
    remote = [rows(seen).query("tier == 'remote'")["outcome"].tolist() for seen in (first, again)]
    assert remote == [["miss", "saved", "saved"], ["hit"]]
    assert redis_server.calls()["get"] == 2 and redis_server.calls()["set"] == 2
    assert len(again.metrics) == 1, "the size was known to vary"


# Bad input


def test_a_damaged_profile_counts_as_none(job):
    sizes(3, 4)
    job.write_bytes(b"no profile")
    seen = in_parity(lambda: sizes(5, 6))
    assert outcomes(seen) == ["failed", "saved", "saved"] and seen.result == [10.0, 12.0]
    first = rows(seen).iloc[0]
    assert (first["bytes"], first["reason"]) == (10, "its file cannot be read as a profile")
    assert len(seen.metrics) == 2


def test_a_folder_that_cant_be_written(job):
    """torch gives up the call, watched or not."""
    job.parent.mkdir(parents=True)
    job.with_name(job.name + ".tmp").mkdir()

    def run():
        with pytest.raises(torch._dynamo.exc.InternalTorchDynamoError, match="IsADirectory") as details:
            sizes(3)
        return str(details.value)

    unwatched = run()
    seen = observed(run)  # torch has counted the graph by then, and the compile has failed nevertheless.
    assert len(seen.session.compiles) == len(seen.metrics) == 1
    assert seen.result == unwatched
    assert outcomes(seen) == ["miss", "failed"]
    assert rows(seen)["exception_type"].tolist()[-1] == "IsADirectoryError"
    assert rows(seen)["action"].tolist() == ["look_up", "store"]
    code = seen.session.cache_lookups.query("cache == 'dynamo_code'")
    assert code["outcome"].tolist() == ["miss", "failed"], "what was compiled is not kept"
