"""Autotuning of operators on the CPU: every choice, its time, and the one that was taken."""

import array
import fcntl
import importlib
import json
import os
import shutil
import signal
import termios
import threading
import time
from collections import Counter

import pytest
import torch
from torch._functorch import config as functorch
from torch._inductor import autotune_process, config
from torch._inductor.codecache import PersistentCache
from torch._inductor.kernel.custom_op import CustomOpConfig, register_custom_op_autotuning
from torch._inductor.utils import clear_caches

import compilediag as cd
from tests import inside

from .assertion import in_parity

QUIET = {"max_autotune": True, "autotune_num_choices_displayed": 0, "max_autotune_report_choices_stats": False}
A, B = torch.randn(4, 32, 32), torch.randn(4, 32, 32)


@torch.library.custom_op("compilediag_test::refuse", mutates_args=())
def refuse(x: torch.Tensor) -> torch.Tensor:
    """A library that can't do what it is asked for, and says so when it is called."""
    raise RuntimeError("not with this library")


@torch.library.custom_op("compilediag_test::product", mutates_args=())
def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y


@torch.library.custom_op("compilediag_test::refused_product", mutates_args=())
def refused_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return refuse(y)


def directly(x, y):
    return torch.mm(x, y)


def refused_first(x, y):
    return torch.mm(refuse(x), y)


def refused_last(x, y):
    return refuse(torch.mm(x, y))


refuse.register_fake(torch.empty_like)
for op, ways in ((product, [directly, refused_first]), (refused_product, [refused_first, refused_last])):
    op.register_fake(lambda x, y: torch.empty_like(y))
    register_custom_op_autotuning(op, configs=[CustomOpConfig(way) for way in ways], name=op._name)


def tuned_product(size=3, op="product", transposed=False, **patch):
    """Two subgraphs and with torch 2.13 the operator itself, none of which needs a C++ compiler."""
    x, y = torch.rand(size, size), torch.rand(size, size)
    x = x.t() if transposed else x
    with config.patch(QUIET | patch):
        return torch.compile(getattr(torch.ops.compilediag_test, op), dynamic=False)(x, y), x @ y


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder for what the C++ compiler builds, shared by the tests of this module: a candidate takes seconds."""
    return tmp_path_factory.mktemp("inductor_cache")


@pytest.fixture
def untimed(built, monkeypatch):
    """Inductor's caches are empty, but for what was built of the candidates. Nothing was timed before."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(built))
    clear_caches()
    for name in ("cache", "fxgraph", "aotautograd"):
        shutil.rmtree(built / name, ignore_errors=True)
    with config.patch(QUIET):
        yield built


def bmm(a=A, b=B):
    return torch.compile(torch.bmm)(a, b)


def autotune_lookups(seen):
    frame = seen.session.cache_lookups
    return list(frame[frame["cache"] == "autotune"]["outcome"])


def winners(seen):
    return list(seen.session.autotune.query("is_winner")["choice"])


def test_the_choices_of_bmm_are_timed_and_then_answered_from_the_local_cache(untimed):
    seen = in_parity(bmm)
    assert torch.allclose(seen.result, torch.bmm(A, B), atol=1e-5)
    assert seen.counters["inductor"]["select_algorithm_autotune"] == 1
    timed = seen.session.autotune
    assert list(timed["choice_kind"]) == ["extern", "cpp"] and set(timed["op"]) == {"bmm"}
    assert timed["time_ms"].gt(0).all() and timed["benchmark_s"].gt(0).all()
    assert list(timed["is_winner"]) == list(timed["time_ms"] == timed["time_ms"].min())
    assert timed["inputs"][0] == ["float32[4, 32, 32] strides [1024, 32, 1] cpu"] * 2
    assert "register_blocking" in timed["parameters"][1] and set(timed["device"]) == {"cpu"}
    assert set(timed["compile_id"]) == {"0/0"} and timed["function"].notna().all()
    assert autotune_lookups(seen) == ["miss"]

    torch._dynamo.reset()
    with config.patch(fx_graph_cache=False):
        again = in_parity(bmm)
    answered = again.session.autotune
    assert "select_algorithm_autotune" not in again.counters["inductor"]
    assert set(answered["from_cache"]) == {"local"} and answered["benchmark_s"].isna().all()
    assert list(answered["time_ms"]) == list(timed["time_ms"])
    assert list(answered["is_winner"]) == list(timed["is_winner"])
    assert autotune_lookups(again) == ["hit"]


@pytest.mark.parametrize("bundled", [False, True], ids=["by its key", "bundled"])
def test_a_tuned_graph_from_the_cache_is_counted_as_tuned_again(untimed, bundled):
    """By torch. The tables say that nothing was timed, and what torch has counted once more."""
    with functorch.patch(bundled_autograd_cache=bundled):
        in_parity(bmm)
        torch._dynamo.reset()
        seen = in_parity(bmm)
    assert seen.counters["inductor"]["select_algorithm_autotune"] == 1 and seen.session.autotune.empty
    hits = seen.session.cache_lookups.query("outcome == 'hit' and counted_again.notna()")
    assert [again["select_algorithm_autotune"] for again in hits["counted_again"]] == [1]
    assert set(hits["cache"]) == {"aot_autograd" if bundled else "fx_graph"}


def test_without_the_local_cache_all_is_timed_again(untimed):
    in_parity(bmm)
    torch._dynamo.reset()
    with config.patch(fx_graph_cache=False, autotune_local_cache=False):
        seen = in_parity(bmm)
    assert seen.counters["inductor"]["select_algorithm_autotune"] == 1
    assert autotune_lookups(seen) == ["disabled"] and seen.session.autotune["from_cache"].isna().all()


def test_transposed_and_empty_inputs(fresh_inductor_cache):
    def run():
        tuned_product(4, transposed=True)
        tuned_product(0)

    seen = in_parity(run)
    inputs = seen.session.autotune.groupby("run_id", sort=False)["inputs"].first()
    assert [of_one[0] for of_one in inputs] == [
        "float32[4, 4] strides [1, 4] cpu",
        "float32[0, 0] strides [1, 1] cpu",
    ]


def test_a_linear_layer_with_packed_weights_and_what_is_fused_to_it(untimed):
    layer = torch.nn.Linear(64, 32)

    def run():
        with config.patch(freezing=True), torch.no_grad():
            return torch.compile(lambda x: layer(x).relu())(torch.randn(16, 64))

    seen = in_parity(run)
    timed = seen.session.autotune
    assert set(timed["op"]) == {"packed_linear"} and set(timed["choice_kind"]) == {"cpp", "extern"}
    assert len(winners(seen)) == 1
    [counted] = (n for name, n in seen.counters["inductor"].items() if name.endswith("Benchmarker.benchmark_cpu"))
    assert counted == len(timed)


def test_sizes_that_vary_are_tuned_at_their_hints(untimed):
    seen = in_parity(lambda: torch.compile(torch.bmm, dynamic=True)(A, B))
    tuned = seen.session.autotune
    assert len(tuned) == 0 or tuned["inputs"][0][0] == "float32[4, 32, 32] strides [1024, 32, 1] cpu"


@pytest.fixture(scope="module")
def pool():
    """The processes that time choices, of which each imports torch; gone afterwards."""
    yield autotune_process.get_tuning_process_pool
    autotune_process.get_tuning_process_pool().shutdown()
    autotune_process.get_tuning_process_pool.cache_clear()


@pytest.fixture
def tuner(pool, untimed):
    """The process that times choices, alive."""
    # On a busy machine the process needs more than torch's minute for its imports.
    with config.patch(autotune_in_subproc=True, max_autotune_subproc_result_timeout_seconds=600.0):
        yield pool()


def test_a_choice_is_timed_in_another_process(tuner):
    seen = in_parity(bmm)
    timed = seen.session.autotune.set_index("choice_kind")
    assert not timed.loc["extern", "in_subprocess"] and timed.loc["cpp", "in_subprocess"]
    assert timed.loc["cpp", "tuner_pid"] == tuner.processes[0].process.pid
    assert timed["time_ms"].gt(0).all() and len(winners(seen)) == 1


def waits_in(pipe):
    """How many bytes were written into the pipe that nobody has read."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, count)
    return count[0]


def kill_when_asked(pool):
    """Let the tuner sleep, and kill it as soon as it has something to do."""
    tuner = pool.processes[0]
    os.kill(tuner.process.pid, signal.SIGSTOP)

    def kill():
        while not waits_in(tuner.write_pipe):
            time.sleep(0.01)
        tuner.process.kill()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.filterwarnings("ignore:Failed to benchmark choice")
def test_a_tuner_that_is_killed_costs_its_choice_and_is_started_anew(tuner):
    first = tuner.processes[0].process.pid
    killer = kill_when_asked(tuner)
    seen = in_parity(bmm)
    killer.join()
    lost = seen.session.autotune.query("time_ms.isna()")
    assert list(lost["fail_reason"]) == [f"the tuner, process {first}, was ended by signal 9"]
    assert list(lost["choice_kind"]) == ["cpp"] and winners(seen) == ["bmm"]
    assert torch.allclose(seen.result, torch.bmm(A, B), atol=1e-5)

    torch._dynamo.reset()
    with config.patch(fx_graph_cache=False, autotune_local_cache=False):
        again = in_parity(bmm)
    later = again.session.autotune["tuner_pid"].dropna()
    assert len(later) == 1 and later.iloc[0] != first and again.session.autotune["fail_reason"].isna().all()


def test_a_choice_that_raises_is_recorded_with_its_error(fresh_inductor_cache):
    seen = in_parity(tuned_product)
    assert torch.allclose(*seen.result)
    timed = seen.session.autotune
    failed = timed[timed["fail_reason"].notna()]
    assert len(timed) >= 2 and len(failed) == 1
    assert failed["fail_reason"].iloc[0] == "RuntimeError: not with this library"
    assert failed["choice_kind"].iloc[0] == "subgraph"
    assert failed["time_ms"].isna().all() and not failed["is_winner"].any() and len(winners(seen)) == 1


def test_when_every_choice_fails_torch_raises_and_each_reason_is_recorded(fresh_inductor_cache):
    def run():
        with pytest.raises(Exception, match="NoValidChoicesError"):
            tuned_product(op="refused_product", fx_graph_cache=False)

    seen = in_parity(run)
    assert list(seen.session.compiles["outcome"]) == ["failed"]
    failed = seen.session.autotune
    assert (
        len(failed) >= 2 and failed["fail_reason"].str.contains("not with this library").all() and winners(seen) == []
    )


def test_when_no_choice_is_left_the_row_says_why(fresh_inductor_cache):
    def run():
        nothing = {"test_configs.autotune_choice_name_regex": "nothing is called so", "fx_graph_cache": False}
        with config.patch(QUIET | nothing), pytest.raises(Exception, match="NoValidChoicesError"):
            bmm()

    seen = in_parity(run)
    row = seen.session.autotune.iloc[0]
    assert len(seen.session.autotune) == 1 and row["op"] == "bmm" and not row["is_winner"]
    assert row["fail_reason"].startswith("NoValidChoicesError: No choices to select")


def test_a_cache_file_that_cannot_be_read_fails_the_compile_as_it_does_unwatched(fresh_inductor_cache):
    path = PersistentCache.get_local_cache_path()
    path.parent.mkdir(parents=True)
    path.write_text("{")

    def run():
        with pytest.raises(Exception, match="JSONDecodeError"):
            tuned_product(fx_graph_cache=False)

    seen = in_parity(run)
    looked = seen.session.cache_lookups.query("cache == 'autotune'")
    assert list(looked["outcome"]) == ["failed"] and list(looked["exception_type"]) == [json.JSONDecodeError.__name__]
    assert seen.session.autotune["fail_reason"].str.startswith("JSONDecodeError").all()
    assert len(seen.session.autotune) > 0 and winners(seen) == []


def test_two_threads_tune_at_once(fresh_inductor_cache, settings_put_back):
    def run():
        threads = [threading.Thread(target=tuned_product, args=(size,)) for size in (3, 5)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]

    seen = in_parity(run)
    timed = seen.session.autotune
    assert timed["run_id"].nunique() == timed["compile_id"].nunique() == 2
    for _, of_one in timed.groupby("run_id"):
        assert len(of_one) >= 2 and of_one["inputs"].map(tuple).nunique() == 1


def test_each_of_the_hosts_calls_happens_exactly_once_and_stop_puts_all_back(fresh_inductor_cache):
    below, above = Counter(), Counter()

    def counting(inner, calls, name):
        bound = type(inner) if isinstance(inner, (staticmethod, classmethod)) else None
        function = inner.__func__ if bound else inner

        def counted(*args, **kwargs):
            calls[name] += 1
            return function(*args, **kwargs)

        return bound(counted) if bound else counted

    with cd.watch():
        others = inside.list_places(but=["select_algorithm"])
        found = [place for place in inside.list_places() if place not in others]
    genuine = {place: vars(place[0])[place[1]] for place in found}
    for owner, name in found:
        setattr(owner, name, counting(vars(owner)[name], below, name))
    with cd.watch():
        ours = {place: vars(place[0])[place[1]] for place in found}
        for owner, name in found:
            setattr(owner, name, counting(vars(owner)[name], above, name))
        tuned_product()
        for (owner, name), wrapper in ours.items():
            setattr(owner, name, wrapper)
    for (owner, name), original in genuine.items():
        setattr(owner, name, original)
    assert above == below and {"__call__", "do_autotuning", "lookup", "benchmark", "benchmark_choice"} <= set(above)


def tuning_source():
    return inside.find_source("select_algorithm")


@pytest.mark.swallows
def test_what_we_raise_reaches_nobody(fresh_inductor_cache):
    def broken(*args):
        raise ZeroDivisionError("our own fault")

    with cd.watch() as session:
        tuning_source().emit = broken
        got, expected = tuned_product()
        state = next(row for row in session.status() if row["name"] == "select_algorithm")
    assert torch.allclose(got, expected)
    assert state["reason"].endswith("the last ZeroDivisionError: our own fault")


@pytest.mark.parametrize(
    ("module", "cls", "name"),
    [
        ("torch._inductor.select_algorithm", "AlgorithmSelectorCache", "do_autotuning"),
        ("torch._inductor.codecache", "PersistentCache", "lookup"),
        ("torch._inductor.autotune_process", "TuningProcess", "get"),
        ("torch._inductor.ir", "MultiTemplateBuffer", "finalize_as_triton_caller"),
        ("torch._inductor.scheduler", "Scheduler", "finalize_multi_template_buffers"),
    ],
)
def test_a_missing_hook_target_is_reported_by_name(module, cls, name, monkeypatch):
    owner = getattr(importlib.import_module(module), cls)
    with monkeypatch.context() as patch:
        patch.delattr(owner, name)
        with cd.watch() as session:
            pass
    state = next(row for row in session.status() if row["name"] == "select_algorithm")
    assert (state["status"], state["reason"]) == ("unavailable", f"this torch has no {module}.{cls}.{name}")


def test_a_tool_that_clears_the_savers_of_feedback_takes_nothing_from_us(fresh_inductor_cache):
    from torch._inductor.select_algorithm import add_feedback_saver, clear_feedback_savers

    details = []

    def run():
        add_feedback_saver(lambda times, *rest: details.append(len(times)))
        tuned_product(3)
        clear_feedback_savers()
        tuned_product(4)

    seen = in_parity(run)
    first, second = (len(of_one) for _, of_one in seen.session.autotune.groupby("run_id"))
    assert details == [first] and first == second
