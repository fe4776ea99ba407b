"""Two threads that compile at once: the numbers still match torch's, and each lookup belongs to its function."""

import contextvars
import threading
import time

import pytest
import torch
from torch._functorch import config as functorch
from torch._inductor import config
from torch.fx import _symbolic_trace

from .assertion import in_parity
from .cache_programs import lookups

pytestmark = pytest.mark.usefixtures("fresh_inductor_cache", "settings_put_back")

SIZES = (3, 4, 5, 6)


def left(x):
    return x @ x


def right(x):
    return x @ x @ x


#: torch's answer to a compiled call while any thread traces, be it another one: the flag is one for the process.
REFUSED = "Detected that you are using FX to symbolically trace a dynamo-optimized function"
#: Traces that overlap can leave that flag up for good. A trace of these functions takes milliseconds.
LEFT_UP_S = 5.0


def accepted(call):
    """What `call` gives, asked again for as long as torch refuses it: a refused call compiles and counts nothing."""
    since = time.monotonic()
    while True:
        try:
            return call()
        except RuntimeError as error:
            if REFUSED not in str(error):
                raise
            if time.monotonic() - since > LEFT_UP_S:
                _symbolic_trace._is_fx_tracing_flag = False
            time.sleep(0.01)


def compiles(function):
    """A compile a size, each with its backward."""
    compiled = torch.compile(function, dynamic=False)
    for size in SIZES:
        x = torch.ones(size, size, requires_grad=True)
        accepted(lambda x=x: compiled(x)).backward(torch.ones(size, size))


def at_once(*functions):
    """Run each function in a thread of its own, with this one's configuration; what one raises is raised here."""
    raised = []
    start = threading.Barrier(len(functions))

    def run(function):
        try:
            start.wait(300)
            function()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(run, function)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def both():
    torch._dynamo.reset()
    at_once(lambda: compiles(left), lambda: compiles(right))


@pytest.mark.since_torch("2.13", "torch takes another thread's tracing for its own, and fails")
@pytest.mark.parametrize("detail", ["lean", "full"])
def test_caches_cold_and_warm(detail):
    cold, warm = in_parity(both, detail), in_parity(both, detail)
    assert cold.counters["aot_autograd"]["autograd_cache_miss"] == 2 * len(SIZES)
    assert warm.counters["aot_autograd"]["autograd_cache_hit"] == 2 * len(SIZES)
    for seen in (cold, warm):
        frame = seen.session.cache_lookups.query("cache in ('fx_graph', 'aot_autograd')")
        assert frame.groupby("function").size().nunique() == 1 and set(frame["function"]) == {"left", "right"}
        named = seen.session.compiles.set_index("compile_id")["function"].to_dict()
        assert frame["function"].tolist() == [named[compile_id] for compile_id in frame["compile_id"]]


def test_a_server_between_them(redis_server):
    with config.patch(fx_graph_remote_cache=True), functorch.patch(enable_remote_autograd_cache=True):
        before = redis_server.calls()
        seen = in_parity(both)
    calls = redis_server.calls()
    remote = [row for row in lookups(seen.session, "fx_graph", "tier", "action") if row[0] == "remote"]
    remote += [row for row in lookups(seen.session, "aot_autograd", "tier", "action") if row[0] == "remote"]
    assert sum(action == "look_up" for _, action in remote) == calls.get("get", 0) - before.get("get", 0) > 0
    assert sum(action == "store" for _, action in remote) == calls.get("set", 0) - before.get("set", 0) > 0
