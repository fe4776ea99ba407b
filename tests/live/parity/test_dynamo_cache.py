"""Dynamo's own cache: look-ups that found nothing, what was compiled then, and the entries that went."""

import gc
import threading

import pytest
import torch
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list as entries_of

from tests.live import programs

from .assertion import in_parity


def rows(seen, *outcomes, tier="memory"):
    frame = seen.session.cache_lookups.query("cache == 'dynamo_code'")
    return frame[(frame["tier"] == tier) & frame["outcome"].isin(outcomes or frame["outcome"].unique())]


def in_frames_parity(run):
    """Parity, and torch's own count of the frames that it was asked to compile (it leaves out fullgraph=True)."""
    seen = in_parity(run)
    frames, failed = seen.counters.get("frames", {}), rows(seen, "failed")
    limits = rows(seen, "bypass")["reason"].str.contains("is reached")
    assert len(rows(seen, "miss")) == frames.get("total", 0)
    assert len(rows(seen, "miss")) - len(failed) - limits.sum() == frames.get("ok", 0)
    assert len(rows(seen, "miss")) == len(rows(seen, "saved", "bypass", "failed")), "each look-up came to something"
    return seen


def named(function, name):
    return programs.renamed(function, name)


def test_entries_are_saved_and_hits_are_not_seen():
    function = named(lambda x, n: x * n, "product")
    compiled = programs.compiled(function)
    seen = in_frames_parity(lambda: [compiled(torch.ones(2), n) for n in (2, 2.5, 2, 2.5, True, 2)])
    assert len(rows(seen, "saved")) == len(entries_of(function.__code__)) == len(seen.metrics) == 3
    assert rows(seen, "saved")["function"].unique().tolist() == ["product"]


def test_reasons_count_the_entries_that_did_not_fit():
    compiled = programs.compiled(named(lambda x, text: x + len(text), "texts"))
    seen = in_frames_parity(lambda: [compiled(torch.ones(2), "n" * n) for n in (0, 1, 2, 1)])
    assert rows(seen, "miss")["reason"].tolist() == [
        "no entry yet",
        "one entry, which does not fit",
        "2 entries, none of which fits",
    ]
    saved = rows(seen, "saved")
    assert saved["compile_id"].tolist() == [m.compile_id for m in seen.metrics]
    assert (saved["taken_s"] > 0).all()


def test_code_after_a_graph_break_has_entries_of_its_own():
    seen = in_frames_parity(programs.graph_breaks)
    names = rows(seen, "saved")["function"]
    assert names.str.startswith("torch_dynamo_resume_in").sum() >= 2
    assert len(rows(seen, "saved")) == len(seen.metrics)


@pytest.mark.parametrize("limit", ["recompile_limit", "accumulated_recompile_limit"])
def test_a_limit_that_is_reached(limit):
    def run():
        with torch._dynamo.config.patch({limit: 2}):
            compiled = programs.compiled(named(lambda x, text: x + len(text), "texts"))
            return [compiled(torch.ones(2), "n" * n).tolist() for n in range(4)]

    seen = in_frames_parity(run)
    [bypass] = rows(seen, "bypass")["reason"]
    assert bypass == f"{limit} is reached: nothing more is compiled for this function"
    assert rows(seen, "bypass")["compile_id"].tolist() == ["0/2"]
    assert len(rows(seen, "miss")) == 3, "from then on nothing is looked up any more"
    assert seen.result == [[1.0 + n] * 2 for n in range(4)]


def test_a_function_that_torch_skips():
    function = named(lambda n: n + 1, "no_tensors")
    seen = in_frames_parity(lambda: programs.compiled(function)(1))
    assert rows(seen, "miss", "bypass")["outcome"].tolist() == ["miss", "bypass"]
    assert rows(seen, "bypass")["reason"].tolist()[0].startswith("runs without being compiled: ")
    assert rows(seen, "saved").empty and entries_of(function.__code__) == []


class Boom(Exception):
    pass


def test_a_compile_that_fails():
    def backend(graph, inputs):
        raise Boom("not today")

    def run():
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
            programs.compiled(lambda x: x + 1, backend=backend)(torch.ones(2))

    [failed] = rows(in_frames_parity(run), "failed").itertuples()
    assert "not today" in failed.reason and failed.exception_type == "BackendCompilerFailed"
    assert failed.compile_id == "0/0"


def test_an_entry_whose_object_is_gone():
    class Scale:
        @staticmethod
        def times(x):
            return x * 2

    classes = [Scale]
    del Scale

    def run():
        compiled = programs.compiled(named(lambda x, scale: scale.times(x), "scaled"))
        compiled(torch.ones(2), classes[0])
        classes.clear()
        gc.collect()

    [gone] = rows(in_frames_parity(run), "evicted").itertuples()
    assert (gone.function, gone.compile_id) == ("scaled", "0/0")
    assert gone.reason == "its guards refer to L['scale'], which is gone"


def test_entries_that_are_reset():
    functions = [named(lambda x, n: x * n, f"product_{i}") for i in range(2)]

    def run():
        one, other = (programs.compiled(f) for f in functions)
        [one(torch.ones(2), n) for n in (1.5, True)]
        other(torch.ones(2), 1)
        torch._dynamo.eval_frame.remove_from_cache(functions[1])
        torch._dynamo.reset()

    seen = in_frames_parity(run)
    cleared = rows(seen, "cleared")
    assert cleared["function"].tolist() == ["product_1", "product_0", "product_0"]
    assert sorted(cleared["compile_id"]) == sorted(rows(seen, "saved")["compile_id"])
    assert [entries_of(f.__code__) for f in functions] == [[], []]


def test_fullgraph_is_looked_up_alike():
    seen = in_parity(lambda: programs.compiled(lambda x: x + 1, fullgraph=True)(torch.ones(2)))
    assert rows(seen)["outcome"].tolist() == ["miss", "saved"]


def test_two_threads_at_once():
    def work(number):
        compiled = programs.compiled(named(lambda x, text: x + len(text), f"thread_{number}"))
        barrier.wait()
        for n in range(3):
            compiled(torch.ones(2), "n" * n)

    def run():
        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    barrier = threading.Barrier(2)
    seen = in_frames_parity(run)
    assert sorted(rows(seen, "saved")["function"]) == ["thread_0"] * 3 + ["thread_1"] * 3
    assert rows(seen, "saved")["compile_id"].is_unique


def test_the_end_of_the_process_evicts_nothing(python, tmp_path):
    program = (
        "import sys, compilediag as cd\n"
        "cd.start(sys.argv[1])\n"
        "import torch\n"
        "class Scale:\n"
        "    @staticmethod\n"
        "    def times(x):\n"
        "        return x * 2\n"
        "torch.compile(lambda x, scale: scale.times(x), backend='eager')(torch.ones(2), Scale)\n"
    )
    done = python("-c", program, tmp_path / "run.cdiag")
    assert done.returncode == 0, done.stderr
    import compilediag as cd

    frame = cd.load(tmp_path / "run.cdiag").cache_lookups
    assert frame["outcome"].tolist() == ["miss", "saved"]


# Packages of compiled code on disk


def packaged(function):
    from torch._dynamo.precompile_context import PrecompileContext

    with torch._dynamo.config.patch(caching_precompile=True):
        result = programs.compiled(function, backend="inductor")(torch.ones(2, 2))
        PrecompileContext.save_to_dynamo_cache()
        torch._dynamo.reset()
    return result.tolist()


def square(x):
    return x @ x


def damage_packages(folder):
    found = list((folder / "dynamo").rglob("entry"))
    for entry in found:
        entry.write_bytes(b"no package")
    return found


def test_packages_that_are_missed_saved_found_and_damaged(fresh_inductor_cache, monkeypatch):
    from torch._dynamo.package import DynamoCache

    monkeypatch.setattr(DynamoCache, "_path_prefix", str(fresh_inductor_cache / "dynamo"), raising=False)

    def run():
        first = [packaged(square), packaged(square)]
        assert damage_packages(fresh_inductor_cache)
        return [*first, packaged(square)]

    seen = in_parity(run)
    assert seen.result == [[[2.0, 2.0], [2.0, 2.0]]] * 3
    found = rows(seen, "miss", "hit", "failed", tier="local")
    assert found["outcome"].tolist() == ["miss", "hit", "failed"]
    assert found["function"].tolist() == ["square"] * 3
    assert found["exception_type"].tolist()[-1] == "RuntimeError" and "load package" in found["reason"].tolist()[-1]
    assert rows(seen, "saved", tier="local")["key"].nunique() == 1
