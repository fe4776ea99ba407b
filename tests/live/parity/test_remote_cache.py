"""Remote caches through a real Redis: the tables, torch's counters and the server's own account say the same."""

import sys
import threading
import time

import pytest
import torch
from torch._functorch import config as functorch
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.remote_cache import create_cache
from torch._inductor.utils import fresh_cache

from .assertion import in_parity
from .cache_counters import rows
from .cache_programs import inference, lookups, the_row, training

pytestmark = pytest.mark.usefixtures("fresh_inductor_cache")


@pytest.fixture
def fx_remote():
    with config.patch(fx_graph_remote_cache=True), functorch.patch(enable_autograd_cache=False):
        yield


@pytest.fixture
def both_remote():
    with config.patch(fx_graph_remote_cache=True), functorch.patch(enable_remote_autograd_cache=True):
        yield


def afresh(run=inference):
    """In a cache directory of its own, as another machine would."""
    with fresh_cache():
        return run()


def in_parity_with(server, run, detail="full"):
    """The shared assertion, and the server's own count of gets and puts."""
    before = server.calls()
    seen = in_parity(run, detail)
    after = server.calls()
    asked = seen.session.cache_lookups.query("tier == 'remote'")
    assert {name: after.get(name, 0) - before.get(name, 0) for name in ("get", "set")} == {
        "get": int((asked["action"] == "look_up").sum()),
        "set": int((asked["action"] == "store").sum()),
    }
    return seen


def remote(seen, *columns, cache="fx_graph"):
    frame = rows(seen.session, cache, tier="remote").astype(object)
    return [tuple(values) for values in frame.where(frame.notna(), None)[list(columns)].itertuples(index=False)]


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_one_machine_saves_and_the_others_hit(redis_server, fx_remote, detail):
    first, second, third = (in_parity_with(redis_server, afresh, detail) for _ in range(3))
    assert remote(first, "action", "outcome") == [("look_up", "miss"), ("store", "saved")]
    assert remote(second, "action", "outcome") == remote(third, "action", "outcome") == [("look_up", "hit")]
    calls = redis_server.calls()
    assert (calls["get"], calls["set"]) == (3, 1)
    assert [sum(m.inductor_fx_remote_cache_hit_count for m in seen.metrics) for seen in (first, second)] == [0, 1]
    (key,) = redis_server.client.keys()
    size = redis_server.client.strlen(key)
    hit = the_row(second.session, "fx_graph", outcome="hit")
    assert hit["key"] in key.decode() and hit["bytes"] == size == remote(first, "bytes")[1][0]
    assert hit["saved_s"] == the_row(first.session, "fx_graph", outcome="saved", tier="local")["taken_s"]
    assert hit["kernels"] == 0 and hit["function"] == "squared" and hit["duration_s"] > 0


def test_what_only_the_server_had_is_a_miss_of_the_local_tier(redis_server, fx_remote):
    in_parity_with(redis_server, afresh)
    seen = in_parity_with(redis_server, afresh)
    details = [row for row in lookups(seen.session, "fx_graph", "tier", "action", "outcome") if row[1] == "look_up"]
    assert details == [("local", "look_up", "miss"), ("remote", "look_up", "hit")]
    assert seen.counters["inductor"]["fxgraph_cache_hit"] == 1 and "fxgraph_cache_miss" not in seen.counters["inductor"]


def test_the_server_alone(redis_server, fx_remote):
    with config.patch(fx_graph_cache=False):
        cold, warm = (in_parity_with(redis_server, afresh) for _ in range(2))
    assert remote(cold, "outcome") == [("miss",), ("saved",)] and remote(warm, "outcome") == [("hit",)]
    row = the_row(warm.session, "fx_graph", tier="local", action="look_up")
    assert (row["outcome"], row["reason"]) == ("disabled", "the local tier is off")


def test_both_caches_of_a_training_step(redis_server, both_remote):
    cold, warm = (in_parity_with(redis_server, lambda: afresh(training)) for _ in range(2))
    assert remote(cold, "action", "outcome", cache="aot_autograd") == [("look_up", "miss"), ("store", "saved")]
    assert remote(warm, "outcome", cache="aot_autograd") == [("hit",)] and remote(warm, "outcome") == [("hit",)] * 2
    hit = the_row(warm.session, "aot_autograd", outcome="hit")
    assert [(hit["forward_key"],), (hit["backward_key"],)] == remote(warm, "key")
    assert hit["saved_s"] == pytest.approx(hit["forward_saved_s"] + hit["backward_saved_s"])


def test_a_guard_that_failed_of_the_servers_entry(redis_server, both_remote):
    def run(size):
        torch._dynamo.reset()
        torch.compile(lambda x, w: x[:4] @ w, dynamic=True)(torch.ones(size, 4), torch.ones(4, 4))

    in_parity_with(redis_server, lambda: afresh(lambda: run(8)))
    seen = in_parity_with(redis_server, lambda: afresh(lambda: run(3)))
    for tier in ("local", "remote"):
        row = the_row(seen.session, "aot_autograd", tier=tier, action="look_up")
        assert row["outcome"] == "guard_miss" and row["guard"] == "4 <= L['t0'] (L['t0'] is 3)"


def test_the_cache_of_tuned_configurations_goes_the_same_way(redis_server):
    """Kernels are tuned on a GPU; torch's cache of the results needs none."""
    cache = create_cache("tuned", False, "FbRemoteAutotuneCache", "RemoteAutotuneCache")

    def run():
        before = cache.get("kernel")
        cache.put("kernel", {"XBLOCK": 64})
        return before, cache.get("kernel")

    seen = in_parity_with(redis_server, run)
    assert seen.result == (None, {"XBLOCK": 64}) and seen.stats["RemoteAutotuneCache"]["hit"] == 1
    assert remote(seen, "outcome", "bytes", cache="autotune") == [("miss", None), ("saved", 14), ("hit", 14)]


# Bad input


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"data": "Z2FyYmFnZQ=="}', "the entry could not be loaded: UnpicklingError"),
        (b"{no json", "the get raised JSONDecodeError"),
    ],
)
def test_damaged_entries_are_recorded_and_compiled_again(redis_server, both_remote, value, reason):
    in_parity_with(redis_server, afresh)
    redis_server.client.mset(dict.fromkeys(redis_server.client.keys(), value))
    seen = in_parity_with(redis_server, afresh)
    assert seen.result.eq(4).all()
    for cache in ("fx_graph", "aot_autograd"):
        row = the_row(seen.session, cache, tier="remote", action="look_up")
        assert row["outcome"] == "failed" and row["reason"].startswith(reason) and row["bytes"] == len(value)
        assert the_row(seen.session, cache, tier="remote", action="store")["outcome"] == "saved"


def test_a_slow_server_shows_in_the_seconds(redis_server, fx_remote):
    def run():
        redis_server.pause()
        again = threading.Thread(target=resume, daemon=True)
        again.start()
        afresh()
        again.join()

    def resume():
        while not redis_server.has_unread():
            time.sleep(0.01)
        time.sleep(1)
        redis_server.resume()

    seen = in_parity_with(redis_server, run)
    (waited,), _ = remote(seen, "duration_s")
    assert waited > 0.9 and remote(seen, "outcome") == [("miss",), ("saved",)]


def test_a_dead_server_is_recorded_at_each_lookup_and_torch_continues(redis_server, both_remote):
    in_parity_with(redis_server, afresh)
    redis_server.stop()
    seen = in_parity(afresh)
    assert seen.result.eq(4).all() and seen.stats["RemoteFxGraphCache"]["put"] == 1, "torch counts what was never put"
    for cache in ("fx_graph", "aot_autograd"):
        get = the_row(seen.session, cache, tier="remote", action="look_up")
        assert (get["outcome"], get["exception_type"]) == ("failed", "ConnectionError")
        assert get["reason"] == f"no connection to Redis at 127.0.0.1:{redis_server.port}: torch goes on without it"
        put = the_row(seen.session, cache, tier="remote", action="store")
        assert put["outcome"] == "disabled" and put["reason"].startswith("torch stopped using the server")
        assert the_row(seen.session, cache, tier="local", action="look_up")["outcome"] == "miss"


class Stops(CustomGraphPass):
    """A pass of the user's, during which the server dies."""

    def __init__(self, server):
        self.server = server

    def __call__(self, graph):
        self.server.stop()

    def __deepcopy__(self, memo):
        return self

    def uuid(self):
        return "stops"


def test_a_server_that_dies_between_get_and_put_is_recorded(redis_server, fx_remote):
    with config.patch(post_grad_custom_pre_pass=Stops(redis_server)):
        seen = in_parity(afresh)
    assert remote(seen, "action", "outcome") == [("look_up", "miss"), ("store", "failed")]
    assert the_row(seen.session, "fx_graph", tier="local", action="store")["outcome"] == "saved"
    assert seen.result.eq(4).all()


def test_a_put_that_raises_is_a_write_error(redis_server, fx_remote):
    """A server that takes no more: torch catches it, and the entry on the disk stays."""
    redis_server.client.config_set("maxmemory", 1)
    seen = in_parity_with(redis_server, afresh)
    assert seen.counters["inductor"]["fxgraph_cache_write_error"] == 1
    row = the_row(seen.session, "fx_graph", tier="remote", action="store")
    assert row["outcome"] == "failed" and row["reason"].startswith("the put raised OutOfMemoryError")
    assert the_row(seen.session, "fx_graph", tier="local", action="store")["outcome"] == "saved"


def test_a_put_that_raises_to_the_caller_passes_through(redis_server, both_remote):
    """torch does not catch what its other cache meets when it puts."""
    redis_server.client.config_set("maxmemory", 1)

    def run():
        with pytest.raises(Exception, match="maxmemory") as raised:
            afresh()
        return type(raised.value)

    unwatched, seen = run(), in_parity_with(redis_server, run)
    assert seen.result is unwatched
    row = the_row(seen.session, "aot_autograd", tier="remote", action="store")
    assert row["outcome"] == "failed" and row["exception_type"] == "OutOfMemoryError"
    assert the_row(seen.session, "aot_autograd", tier="local", action="store")["outcome"] == "saved"


def test_a_missing_package_is_reported(monkeypatch, fx_remote):
    monkeypatch.setattr(sys.modules["torch._inductor.remote_cache"], "redis", None)
    seen = in_parity(afresh)
    ((outcome, reason, key),) = remote(seen, "outcome", "reason", "key")
    assert (outcome, reason, key) == ("failed", "RuntimeError: redis not available but required for remote cache", None)
    assert seen.result.eq(4).all()
