"""AOTAutogradCache: each behaviour, number for number, and the FxGraphCache entries that an entry names."""

import contextlib
import shutil

import pytest
import torch
import torch.distributed as dist
import torch.utils._pytree as pytree
from torch._functorch import config as functorch
from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache, BypassAOTAutogradCache
from torch._inductor import config
from torch._inductor.codecache import FxGraphCache

from .assertion import in_parity
from .cache_programs import (
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


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_a_miss_is_saved_and_then_hits_with_its_graphs(detail):
    cold, warm = (in_parity(training, detail).session for _ in range(2))
    assert lookups(cold, "aot_autograd", "action", "outcome") == [("look_up", "miss"), ("store", "saved")]
    assert lookups(warm, "aot_autograd", "action", "outcome") == [("look_up", "hit")]
    saved, hit = the_row(cold, "aot_autograd", outcome="saved"), the_row(warm, "aot_autograd", outcome="hit")
    for name in ("key", "bytes", "forward_key", "backward_key"):
        assert saved[name] == hit[name], name
    assert [hit["forward_key"], hit["backward_key"]] == lookups(warm, "fx_graph", "key")
    assert hit["forward_saved_s"] > 0 and hit["backward_saved_s"] > 0
    assert hit["saved_s"] == pytest.approx(hit["forward_saved_s"] + hit["backward_saved_s"]) == saved["taken_s"]
    assert hit["function"] == "squared" and hit["line"] == squared.__code__.co_firstlineno


def test_an_entry_without_a_backward_names_the_forward_alone():
    cold, warm = (in_parity(inference).session for _ in range(2))
    hit = the_row(warm, "aot_autograd", outcome="hit")
    assert hit["forward_key"] == the_row(cold, "fx_graph", outcome="saved")["key"]
    assert (hit["backward_key"], hit["backward_saved_s"]) == (None, None) and hit["forward_saved_s"] > 0


@pytest.mark.parametrize("run", [inference, training])
def test_look_ups_are_seen_while_torch_logs_no_events(run):
    with events_off():
        seen = in_parity(run)
    assert lookups(seen.session, "aot_autograd", "outcome") == ["miss", "saved"]


# Guards of a cached entry


def split(x, w):
    return torch.split(x, 4)[0] @ w


def sliced(x, w):
    return x[:4] @ w


@pytest.mark.parametrize(
    ("function", "sizes", "guard"),
    [
        (sliced, (8, 3), "4 <= L['t0'] (L['t0'] is 3)"),
        (split, (8, 12), "((3 + L['t0']) // 4) == 2 (L['t0'] is 12)"),
    ],
)
def test_the_guard_that_failed_is_named(function, sizes, guard):
    """A dynamic bound, and one that came out static."""

    def run(rows):
        torch._dynamo.reset()
        torch.compile(function, dynamic=True)(torch.ones(rows, 4), torch.ones(4, 4))

    in_parity(lambda: run(sizes[0]))
    seen = in_parity(lambda: run(sizes[1]))
    assert seen.counters["aot_autograd"]["autograd_cache_guard_miss"] == 1
    row = the_row(seen.session, "aot_autograd", action="look_up")
    assert row["outcome"] == "guard_miss" and guard in row["guard"]


# Bypassed


@torch._dynamo.allow_in_graph
def opaque(x):
    return x @ x


def bypass(run):
    return the_row(in_parity(run).session, "aot_autograd", outcome="bypass", action="look_up")


def test_an_unsupported_target_bypasses():
    row = bypass(lambda: torch.compile(lambda x: opaque(x))(torch.ones(4, 4)))
    assert row["exception_type"] == "BypassAOTAutogradCache" and row["key"] is None
    assert row["reason"].startswith("Unsupported call_function target <function opaque") and "\n" not in row["reason"]


def test_the_graph_cache_being_off_bypasses():
    with config.patch(fx_graph_cache=False):
        assert bypass(inference)["reason"] == "FX graph cache is not enabled"


def test_an_unsupported_operator_of_a_backward_bypasses():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x @ x

        @staticmethod
        def backward(ctx, gradient):
            return gradient @ gradient

    def run():
        torch._dynamo.reset()
        torch.compile(lambda x: Doubled.apply(x))(torch.ones(4, 4, requires_grad=True))

    assert "autograd_function_apply" in bypass(run)["reason"]


def test_compiled_autograd_bypasses():
    def run():
        x = torch.ones(4, 4, requires_grad=True)
        y = torch.compile(squared)(x)
        with torch._dynamo.compiled_autograd._enable(torch.compile):
            y.backward(torch.ones(4, 4))

    row = bypass(run)
    assert row["compile_id"].startswith("!") and "compiled_autograd" in row["reason"]


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(600, 600, bias=False)
        self.second = torch.nn.Linear(600, 600, bias=False)

    def forward(self, x):
        return self.second(self.first(x))


@pytest.mark.skipif(not (dist.is_available() and dist.is_gloo_available()), reason="this torch has no gloo")
def test_the_buckets_of_distributed_training_bypass():
    """torch cuts the graph at the buckets and makes the first call of each part with fake tensors."""

    def run():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            torch.compile(torch.nn.parallel.DistributedDataParallel(Two(), bucket_cap_mb=1))(torch.ones(4, 600))
        finally:
            dist.destroy_process_group()

    seen = in_parity(run)
    assert seen.counters["aot_autograd"]["autograd_cache_bypass"] == 2
    assert "Won't cache a graph with fakify_first_call enabled" in lookups(seen.session, "aot_autograd", "reason")


# Strict: torch raises instead of going on without the cache


def test_a_bypass_that_is_raised_passes_through_and_says_so():
    def run():
        with pytest.raises(Exception, match="FX graph cache is not enabled") as raised:
            inference()
        return type(raised.value)

    with config.patch(fx_graph_cache=False), functorch.patch(strict_autograd_cache=True):
        unwatched, seen = run(), in_parity(run)
    assert seen.result is unwatched
    row = the_row(seen.session, "aot_autograd")
    assert row["outcome"] == "bypass" and "raised to the caller: strict_autograd_cache" in row["reason"]


# What can't be saved


class Label:
    """What a user's tensors carry; `raised` comes out of pickling it."""

    raised: Exception

    def __reduce__(self):
        raise self.raised

    def __deepcopy__(self, memo):
        return self


LABEL = Label()


class Labelled(torch.Tensor):
    """A tensor whose key is made without pickling its label, and whose entry is not."""

    @staticmethod
    def __new__(cls, inner):
        like = {"dtype": inner.dtype, "device": inner.device, "strides": inner.stride()}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, **like)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], LABEL

    @staticmethod
    def __tensor_unflatten__(inner, label, size, stride):
        return Labelled(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args, kwargs):
        args, kwargs = pytree.tree_map_only(cls, lambda t: t.inner, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, cls, function(*args, **kwargs))

    def _stable_hash_for_caching(self):
        return f"labelled {tuple(self.shape)}"


UNSAVED = pytest.mark.parametrize(
    ("raised", "outcome", "reason"),
    [
        (TypeError("no label"), "failed", "not pickled: TypeError: no label (field "),
        (BypassAOTAutogradCache("not this one"), "bypass", "not this one"),
        (OSError("no space"), "failed", "not saved: OSError: no space"),
    ],
)
SINCE = pytest.mark.since_torch("2.12", "tensors can't make their own keys")


def labelled():
    torch._dynamo.reset()
    return torch.compile(squared)(Labelled(torch.ones(4, 4))).inner


@SINCE
@UNSAVED
def test_an_entry_that_is_not_saved_is_not_called_saved(monkeypatch, raised, outcome, reason):
    monkeypatch.setattr(Label, "raised", raised, raising=False)
    seen = in_parity(labelled)
    row = the_row(seen.session, "aot_autograd", action="store")
    assert (row["outcome"], row["exception_type"], row["bytes"]) == (outcome, type(raised).__name__, None)
    assert row["reason"].startswith(reason) and seen.result.eq(4).all()


@SINCE
@UNSAVED
def test_strict_raises_what_could_not_be_saved(monkeypatch, raised, outcome, reason):
    monkeypatch.setattr(Label, "raised", raised, raising=False)

    def run():
        with pytest.raises(Exception, match=str(raised)) as caught:
            labelled()
        return type(caught.value)

    with functorch.patch(strict_autograd_cache=True):
        unwatched, seen = run(), in_parity(run)
    row = the_row(seen.session, "aot_autograd", action="store")
    assert seen.result is unwatched and row["outcome"] == outcome
    assert row["reason"].startswith(reason) and "raised to the caller" in row["reason"]


# Cleared, damaged, unreadable


def test_a_cleared_cache_says_so_and_misses():
    in_parity(inference)

    def run():
        AOTAutogradCache.clear()
        inference()

    details = lookups(in_parity(run).session, "aot_autograd", "action", "outcome", "reason")
    assert details[0] == ("clear", "cleared", "AOTAutogradCache.clear()") and details[1][:2] == ("look_up", "miss")


def test_an_entry_whose_graphs_are_gone_is_a_miss_and_says_so():
    cold = in_parity(training).session
    FxGraphCache.clear()
    seen = in_parity(training)
    row = the_row(seen.session, "aot_autograd", action="look_up")
    assert (row["outcome"], row["exception_type"]) == ("miss", "FXGraphCacheMiss")
    assert row["reason"] == "a graph that the entry names is not in FxGraphCache"
    assert row["forward_key"] == the_row(cold, "aot_autograd", outcome="saved")["forward_key"]
    assert lookups(seen.session, "fx_graph", "outcome")[0] == "miss"


@pytest.mark.parametrize("quiet", [False, True])
def test_an_entry_that_can_not_be_loaded_is_a_miss_with_its_reason(fresh_inductor_cache, quiet):
    in_parity(inference)
    for file in files_of(fresh_inductor_cache, "aotautograd"):
        file.write_bytes(b"damaged")
    with logs_off() if quiet else contextlib.nullcontext():
        seen = in_parity(inference)
    assert_not_loaded(seen, "aot_autograd", with_why=not quiet)


def test_unusable_directories_are_recorded_and_torch_continues(fresh_inductor_cache):
    in_parity(inference)
    (folder,) = {file.parent for file in files_of(fresh_inductor_cache, "aotautograd")}
    shutil.rmtree(folder)
    folder.write_text("in the way")
    seen = in_parity(inference)
    details = lookups(seen.session, "aot_autograd", "action", "outcome", "exception_type")
    assert details == [
        ("look_up", "miss", "NotADirectoryError"),
        ("store", "failed", "FileExistsError"),
    ] or details == [
        *(("look_up", "miss", "NotADirectoryError"), ("store", "failed", "NotADirectoryError")),
    ]
    reason = lookups(seen.session, "aot_autograd", "reason")[0]
    assert reason.startswith(("the entries could not be searched: ", "the entries could not be listed: "))
    assert seen.result.eq(4).all()
