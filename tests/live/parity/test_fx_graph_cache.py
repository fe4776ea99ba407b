"""FxGraphCache, by itself and beneath AOTAutogradCache: each behaviour, number for number."""

import contextlib
import shutil

import pytest
import torch
from torch._functorch import config as functorch
from torch._inductor import config, metrics
from torch._inductor.codecache import FxGraphCache
from torch._inductor.utils import clear_caches, fresh_cache

from .assertion import in_parity
from .cache_programs import (
    Unpicklable,
    assert_not_loaded,
    events_off,
    files_of,
    inference,
    logs_off,
    lookups,
    squared,
    the_row,
    training,
)

pytestmark = pytest.mark.usefixtures("fresh_inductor_cache")


@pytest.fixture
def fx_alone():
    with functorch.patch(enable_autograd_cache=False):
        yield


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_a_miss_is_saved_and_then_hits(fx_alone, detail):
    cold, warm = (in_parity(training, detail).session for _ in range(2))
    assert lookups(cold, "fx_graph", "action", "outcome") == [("look_up", "miss"), ("store", "saved")] * 2
    assert lookups(warm, "fx_graph", "action", "outcome") == [("look_up", "hit")] * 2
    assert lookups(cold, "fx_graph", "key")[1::2] == lookups(warm, "fx_graph", "key")
    assert lookups(cold, "fx_graph", "bytes", "taken_s")[1::2] == lookups(warm, "fx_graph", "bytes", "saved_s")
    for frame in (session.cache_lookups.query("cache == 'fx_graph'") for session in (cold, warm)):
        assert frame["function"].eq("squared").all() and frame["line"].eq(squared.__code__.co_firstlineno).all()
        assert frame["compile_id"].eq("0/0").all() and frame["tier"].eq("local").all()
        assert frame["file"].eq(squared.__code__.co_filename).all() and frame["duration_s"].gt(0).all()


def test_look_ups_beneath_a_hit_of_the_other_cache_are_seen():
    in_parity(training)
    warm = in_parity(training)
    assert warm.counters["inductor"]["fxgraph_cache_hit"] == 2, "they are counted, and not announced"
    assert lookups(warm.session, "fx_graph", "outcome") == ["hit", "hit"]


@pytest.mark.parametrize("run", [inference, training])
def test_look_ups_are_seen_while_torch_logs_no_events(run):
    with events_off():
        seen = in_parity(run)
    assert "miss" in lookups(seen.session, "fx_graph", "outcome")


def test_kernels_of_an_entry_count_again_when_it_hits(fx_alone):
    def run():
        torch._dynamo.reset()
        metrics.generated_kernel_count = 0
        torch.compile(lambda x: (x @ x).sin())(torch.ones(4, 4))
        return metrics.generated_kernel_count

    cold, warm = in_parity(run), in_parity(run)
    assert the_row(cold.session, "fx_graph", outcome="saved")["kernels"] == cold.result == 1
    assert the_row(warm.session, "fx_graph", outcome="hit")["kernels"] == warm.result == 1


# Guards of a cached entry


def first_four(x, w):
    return x[:4] @ w


def all_rows(x, w):
    return x @ w


def pooled(x):
    return torch.nn.functional.adaptive_avg_pool2d(x, (5, 7))


def test_the_guard_of_a_bound_that_failed_is_named(fx_alone):
    """Of three rows the first four are all, so that two functions come to one graph, with a bound and without."""

    def run(function, rows):
        torch._dynamo.reset()
        torch.compile(function, dynamic=True)(torch.ones(rows, 4), torch.ones(4, 4))

    in_parity(lambda: run(first_four, 3))
    row = the_row(in_parity(lambda: run(all_rows, 5)).session, "fx_graph", action="look_up")
    assert row["outcome"] == "guard_miss" and row["guard"] == "L['t0'] <= 3 (L['t0'] is 5)"
    assert lookups(in_parity(lambda: run(all_rows, 6)).session, "fx_graph", "outcome") == ["hit"], "both are kept"


def test_the_guard_of_a_static_size_that_failed_is_named(fx_alone):
    """Inductor makes the height of a pooling static, dynamic as it may be."""

    def run(size):
        torch._dynamo.reset()
        torch.compile(pooled, dynamic=True)(torch.ones(1, 1, size, size))

    in_parity(lambda: run(64))
    row = the_row(in_parity(lambda: run(66)).session, "fx_graph", action="look_up")
    assert row["outcome"] == "guard_miss" and row["guard"] == "L['t0'] == 64 (L['t0'] is 66)"


# Bypassed and disabled


def test_a_higher_order_operator_bypasses():
    def either(x):
        return torch.cond(x.sum() > 0, lambda x: x @ x, lambda x: x @ x @ x, (x,))

    seen = in_parity(lambda: torch.compile(either)(torch.ones(4, 4)))
    row = the_row(seen.session, "fx_graph")
    assert (row["outcome"], row["exception_type"]) == ("bypass", "BypassFxGraphCache")
    assert row["reason"] == "Can't cache HigherOrderOperator: cond" and row["function"] == "either"


def test_a_pass_without_a_key_bypasses():
    with config.patch(post_grad_custom_pre_pass=lambda graph: None):
        seen = in_parity(training)
    assert lookups(seen.session, "fx_graph", "outcome") == ["bypass"] * 2
    assert set(lookups(seen.session, "fx_graph", "reason")) == {"Unsupported post grad custom pass"}


def test_frozen_constants_bypass():
    layer = torch.nn.Linear(4, 4).eval()
    with torch.no_grad(), config.patch(freezing=True):
        seen = in_parity(lambda: torch.compile(layer)(torch.ones(4, 4)))
    assert lookups(seen.session, "fx_graph", "outcome") == ["bypass"]


def test_an_unpicklable_configuration_bypasses_and_says_what_could_not_be_pickled():
    with config.patch({"aot_inductor.metadata": {"made by": lambda: None}}):
        seen = in_parity(inference)
    for cache in ("fx_graph", "aot_autograd"):
        reason = the_row(seen.session, cache, outcome="bypass")["reason"]
        assert reason.startswith("Failed to pickle cache key (") and "<lambda>" in reason


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"fx_graph_cache": False}, "fx_graph_cache is off"), ({"force_disable_caches": True}, "force_disable_caches")],
)
def test_a_cache_that_is_off_says_what_switched_it_off(settings, why):
    with config.patch(**settings):
        seen = in_parity(training)
    rows = [row for row in lookups(seen.session, "fx_graph", "outcome", "reason", "key") if row[0] == "disabled"]
    assert len(rows) == 2 and all(why in reason and key is None for _, reason, key in rows)


def test_bundled_graphs_are_not_looked_up():
    with functorch.patch(bundled_autograd_cache=True):
        cold, warm = (in_parity(training).session for _ in range(2))
    assert lookups(cold, "fx_graph", "outcome") == ["disabled"] * 2 and lookups(warm, "fx_graph", "outcome") == []
    assert "in the aot_autograd entry" in lookups(cold, "fx_graph", "reason")[0]
    hit = the_row(warm, "aot_autograd", outcome="hit")
    assert hit["saved_s"] > 0 and hit["forward_key"] is None and hit["backward_key"] is None


# The file of a looked-up module, cleared and fresh directories


def test_a_module_that_is_gone_is_written_again(fx_alone, fresh_inductor_cache):
    in_parity(training)
    for file in fresh_inductor_cache.glob("*/*.py"):
        file.unlink()
    clear_caches()
    seen = in_parity(training)
    assert seen.counters["inductor"]["fxgraph_lookup_write_file"] == 2
    details = lookups(seen.session, "fx_graph", "action", "outcome", "key")
    assert [row[:2] for row in details] == [("write", "written"), ("look_up", "hit")] * 2
    assert [row[2] for row in details[::2]] == [row[2] for row in details[1::2]]
    sizes = sorted(file.stat().st_size for file in fresh_inductor_cache.glob("*/*.py"))
    assert sorted(lookups(seen.session, "fx_graph", "bytes")[::2]) == sizes


def test_a_cleared_cache_says_so_and_misses(fx_alone):
    in_parity(inference)

    def run():
        FxGraphCache.clear()
        inference()

    seen = in_parity(run)
    assert lookups(seen.session, "fx_graph", "action", "outcome")[:2] == [("clear", "cleared"), ("look_up", "miss")]
    assert lookups(seen.session, "fx_graph", "reason")[0] == "FxGraphCache.clear()"


def test_a_fresh_cache_directory_is_recorded_at_both_ends():
    in_parity(inference)

    def run():
        with fresh_cache():
            inference()
        clear_caches()
        inference()

    seen = in_parity(run)
    for cache in ("fx_graph", "aot_autograd"):
        details = [row for row in lookups(seen.session, cache, "action", "outcome", "reason") if row[0] != "store"]
        assert [row[:2] for row in details] == [
            *(("clear", "cleared"), ("look_up", "miss"), ("clear", "cleared"), ("look_up", "hit")),
        ]
        assert (details[0][2], details[2][2]) == (
            *("fresh_cache begins: an empty directory", "fresh_cache ends: back in the directory before"),
        )


# Bad input


def test_what_can_not_be_pickled_is_not_called_saved(fx_alone):
    with config.patch(post_grad_custom_post_pass=Unpicklable()):
        seen = in_parity(training)
        with logs_off():
            unheard = in_parity(training)
    assert seen.counters["inductor"]["fxgraph_cache_pickle_error"] == 2
    failed = [row for row in lookups(seen.session, "fx_graph", "outcome", "reason", "bytes") if row[0] != "miss"]
    assert [row[0] for row in failed] == ["failed"] * 2
    assert all(reason.startswith("not pickled: ") and "<lambda>" in reason for _, reason, _ in failed)
    assert "not pickled: torch logged why" in lookups(unheard.session, "fx_graph", "reason")


def test_a_directory_that_can_not_be_written_fails_the_store_alone(fx_alone, fresh_inductor_cache):
    fresh_inductor_cache.mkdir()
    (fresh_inductor_cache / "fxgraph").write_text("in the way")
    seen = in_parity(inference)
    assert seen.counters["inductor"]["fxgraph_cache_write_error"] == 1 and seen.result.eq(4).all()
    row = the_row(seen.session, "fx_graph", action="store")
    assert (row["outcome"], row["exception_type"]) == ("failed", "NotADirectoryError")
    assert row["reason"].startswith("not written: NotADirectoryError")


@pytest.mark.parametrize("quiet", [False, True])
def test_an_entry_that_can_not_be_loaded_is_a_miss_with_its_reason(fx_alone, fresh_inductor_cache, quiet):
    in_parity(inference)
    for file in files_of(fresh_inductor_cache, "fxgraph"):
        file.write_bytes(b"damaged")
    with logs_off() if quiet else contextlib.nullcontext():
        seen = in_parity(inference)
    assert_not_loaded(seen, "fx_graph", with_why=not quiet)


def test_a_directory_that_can_not_be_read_fails_as_it_does_unwatched(fx_alone, fresh_inductor_cache):
    in_parity(inference)
    (folder,) = {file.parent for file in files_of(fresh_inductor_cache, "fxgraph")}
    shutil.rmtree(folder)
    folder.write_text("in the way")

    def run():
        try:
            return inference()
        except Exception as error:
            assert "Not a directory" in str(error)
            return type(error)

    unwatched = run()
    seen = in_parity(run)
    row = the_row(seen.session, "fx_graph", action="look_up")
    if isinstance(unwatched, type):
        assert seen.result is unwatched
        assert (row["outcome"], row["exception_type"], row["key"]) == ("failed", "NotADirectoryError", folder.name)
    else:  # Since torch 2.15 it logs the error and compiles.
        assert seen.result.eq(unwatched).all()
        assert (row["outcome"], row["exception_type"], row["key"]) == ("miss", "NotADirectoryError", folder.name)
        assert row["reason"].startswith("the entries could not be listed: NotADirectoryError")
