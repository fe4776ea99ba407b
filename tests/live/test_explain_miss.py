"""Why a cache missed, with the real compiler: the nearest earlier key of the same function, and what differs.

The functions are calls of libraries alone, which Inductor has no C++ to build for. Below: why a cache is bypassed.
"""

import contextlib
import logging

import pytest
import torch
from torch._functorch._aot_autograd import autograd_cache
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

import compilediag as cd
from tests.live import programs

CACHES = ["aot_autograd", "fx_graph"]


def scaled(beta):
    def scale(x, w):
        return torch.addmm(x, x, w, beta=beta)

    return scale


def compiled(function, x=None, **options):
    """Compile a function anew; its graphs are looked up in the caches on disk."""
    torch._dynamo.reset()
    return torch.compile(function, options=options or None)(torch.ones(2, 2) if x is None else x, torch.ones(2, 2))


def misses(session, cache):
    frame = session.cache_lookups
    return frame[(frame["cache"] == cache) & (frame["outcome"] == "miss")]


def last_miss(session, cache):
    return misses(session, cache).iloc[-1]


def read_differences(session, cache="fx_graph"):
    return last_miss(session, cache)["key_diff"]


@pytest.fixture
def watched(fresh_inductor_cache):
    """A session in which `scale` was compiled once, with beta=2."""
    with cd.watch() as session:
        compiled(scaled(2))
        yield session


# One configuration, one constant, one input layout


def test_one_difference(watched):
    assert all(misses(watched, cache)["nearest_key"].isna().all() for cache in CACHES), "nothing to differ from"
    compiled(scaled(2), epilogue_fusion=False)
    for cache in CACHES:
        assert read_differences(watched, cache) == ["inductor_config[epilogue_fusion]: True -> False"]
        first, last = misses(watched, cache)["key"]
        assert last_miss(watched, cache)["nearest_key"] == first != last
    compiled(scaled(3))
    for cache in CACHES:
        [line] = read_differences(watched, cache)
        old, new = line.removeprefix("graph line 2: ").split(" -> ")
        assert "addmm" in old and "beta = 2" in old and "beta = 3" in new
    compiled(scaled(2), x=torch.ones(2, 2).t())
    for cache in CACHES:
        assert read_differences(watched, cache) == ["example_inputs[0] stride: [2, 1] -> [1, 2]"]
    with torch._functorch.config.patch(activation_memory_budget=0.5):
        compiled(scaled(2))
    assert read_differences(watched, "aot_autograd") == ["autograd_config[activation_memory_budget]: 1.0 -> 0.5"]


@pytest.mark.long("builds two C++ libraries")
def test_a_constant_that_is_a_tensor(fresh_inductor_cache):
    with cd.watch() as session:
        for value in (1.0, 5.0):
            compiled(lambda x, w, value=value: x @ torch.tensor([[value, 2.0], [3.0, 4.0]]))
    assert read_differences(session) == [
        "constant[_tensor_constant0]: [[1.0, 2.0], [3.0, 4.0]] -> [[5.0, 2.0], [3.0, 4.0]]"
    ]
    [line] = read_differences(session, "aot_autograd")
    assert line.startswith("graph line 2: ") and "[[1.0, 2.0]" in line and "[[5.0, 2.0]" in line


def test_threads_of_the_machine(fresh_inductor_cache):
    threads = torch.get_num_threads()
    if not hasattr(torch._inductor.codecache.FxGraphHashDetails, "_may_generate_cpu_cpp_code"):
        pytest.skip("this torch's keys do not hold the number of threads")
    with cd.watch() as session:
        try:
            for n in (2, 1):
                torch.set_num_threads(n)
                compiled(scaled(2))
        finally:
            torch.set_num_threads(threads)
    assert [read_differences(session, cache) for cache in CACHES] == [["cpp_runtime_thread_count: 2 -> 1"]] * 2


# Which key it is compared with


def test_forward_and_backward_are_compared_with_their_own(fresh_inductor_cache):
    def train(budget):
        torch._dynamo.reset()
        x = torch.ones(2, 2, requires_grad=True)
        torch.compile(scaled(2), options={"epilogue_fusion": budget})(x, torch.ones(2, 2)).backward(torch.ones(2, 2))

    with cd.watch() as session:
        train(True)
        train(False)
    found = misses(session, "fx_graph")
    assert len(found) == 4
    assert found["nearest_key"].tolist()[2:] == found["key"].tolist()[:2]
    assert found["key_diff"].tolist()[2:] == [["inductor_config[epilogue_fusion]: True -> False"]] * 2


def test_another_function_is_not_compared_with(watched):
    compiled(programs.renamed(scaled(3), "other"))
    assert last_miss(watched, "fx_graph")["function"] == "other"
    assert all(misses(watched, cache)["nearest_key"].isna().all() for cache in CACHES)


def test_an_entry_that_is_gone(watched, fresh_inductor_cache, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(fresh_inductor_cache / "another"))
    compiled(scaled(2))
    for cache in CACHES:
        last = last_miss(watched, cache)
        assert last["nearest_key"] == last["key"] and last["key_diff"] == []
        assert "its entry was deleted or never saved" in watched.explain_miss(last["event_id"])


def test_an_earlier_session_of_another_process(fresh_inductor_cache, history_of_its_own, program_server, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        "import sys, torch\nimport compilediag as cd\n"
        "def f(x):\n    return x @ x\n"
        "with cd.watch() as session:\n"
        "    torch.compile(f, options={'epilogue_fusion': sys.argv[1] == 'on'})(torch.ones(2, 2))\n"
        "for row in session.cache_lookups.query(\"outcome == 'miss'\").itertuples():\n"
        "    print(session.explain_miss(row.event_id))\n"
    )
    first, second = (program_server.run(program, said) for said in ("on", "off"))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout.count("the first lookup of this function") == 2
    assert second.stdout.count("  inductor_config[epilogue_fusion]: True -> False") == 2
    assert second.stdout.count("UTC, train.py, torch 2") == 2
    assert history_of_its_own.exists()


def test_a_history_that_is_switched_off(fresh_inductor_cache, history_of_its_own, monkeypatch):
    monkeypatch.setenv("COMPILEDIAG_HISTORY", "off")
    for _ in range(2):
        with cd.watch() as session:
            compiled(scaled(2))
    assert len(session.cache_lookups) > 0 and not history_of_its_own.exists()


@pytest.mark.parametrize("damage", [b"no database" * 1000, None])
def test_a_history_that_cant_be_used_costs_the_history_alone(fresh_inductor_cache, history_of_its_own, damage):
    if damage is None:
        history_of_its_own.mkdir(parents=True)
    else:
        history_of_its_own.parent.mkdir(parents=True, exist_ok=True)
        history_of_its_own.write_bytes(damage)
    with cd.watch() as session:
        result = compiled(scaled(2))
        compiled(scaled(2), epilogue_fusion=False)
    assert result.tolist() == [[4.0, 4.0]] * 2
    assert read_differences(session) == ["inductor_config[epilogue_fusion]: True -> False"]
    state = session.sources.query("name == 'keys'").iloc[0]
    assert state["status"] == "active" and state["reason"].startswith("keys of earlier sessions are not known: ")


# What it costs and leaves alone


def test_keys_are_the_same_and_nothing_is_logged(fresh_inductor_cache, caplog, monkeypatch):
    def keys():
        found = []
        original = autograd_cache.autograd_cache_key
        with monkeypatch.context() as patch:
            patch.setattr(
                autograd_cache, "autograd_cache_key", lambda *a, **k: found.append(original(*a, **k)) or found[-1]
            )
            compiled(scaled(2))
        return [key for key, _ in found]

    logger = logging.getLogger(autograd_cache.__name__)
    level = logger.level
    plain = keys()
    with caplog.at_level(logging.INFO), cd.watch() as session:
        watched = keys()
        assert logger.level == level
    assert watched == plain == session.cache_lookups.query("cache == 'aot_autograd'")["key"].unique().tolist()
    assert not [r for r in caplog.records if "hash details" in r.getMessage()]


def test_lean_reports_no_differences(fresh_inductor_cache):
    with cd.watch(detail="lean") as session:
        compiled(scaled(2))
        compiled(scaled(3))
    for cache in CACHES:
        found = misses(session, cache)
        assert len(found) == 2 and found["key_diff"].isna().all()
        assert 'detail="full"' in session.explain_miss(found["event_id"].iloc[-1])


# Why AOTAutograd's cache is bypassed, and that the suggested change ends it


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 * ctx.saved_tensors[0]


class HashedPass(CustomGraphPass):
    def __call__(self, graph):
        pass

    def uuid(self):
        return get_hash_for_files((__file__,))


def find_bypasses(function, setting=contextlib.nullcontext()):  # noqa: B008
    torch._dynamo.reset()
    with setting, cd.watch() as session:
        x = torch.ones(4, requires_grad=True)
        torch.compile(function)(x).sum().backward()
    return [found for found in session.findings() if found.rule == "cache_bypass"], x.grad


def test_a_custom_autograd_function_is_cached_by_the_setting(fresh_inductor_cache):
    function = lambda x: Square.apply(x) + 1  # noqa: E731
    (found,), gradient = find_bypasses(function)
    assert found.fix == {"autograd_cache_allow_custom_autograd_functions": True}
    assert "is spent again in the next one" in found.suggestion
    allowed = torch._functorch.config.patch(found.fix)
    left, same = find_bypasses(function, allowed)
    assert left == []
    torch.testing.assert_close(same, gradient)


def test_a_custom_pass_is_cached_if_it_has_a_uuid(fresh_inductor_cache):
    use = torch._inductor.config.patch
    found, gradient = find_bypasses(lambda x: x.sin() + 1, use(post_grad_custom_post_pass=lambda graph: None))
    assert found and all("CustomGraphPass whose uuid()" in one.suggestion for one in found)
    left, same = find_bypasses(lambda x: x.sin() + 1, use(post_grad_custom_post_pass=HashedPass()))
    assert left == []
    torch.testing.assert_close(same, gradient)
