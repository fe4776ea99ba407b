"""Compile keys: what belongs to one compile attempt has its key, whatever id torch gives to others."""

import threading

import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

import compilediag as cd

TABLES = ("compiles", "recompiles", "guard_failures", "cache_lookups", "graph_breaks", "phases", "artifacts")


def compiled(function):
    return torch.compile(function, backend="aot_eager", dynamic=False)


def train(function, *sizes):
    """A call and its backward for each size."""
    for size in sizes:
        x = torch.ones(size, requires_grad=True)
        function(x).sum().backward()


def left(x):
    return x.sin() * 2


def right(x):
    torch._dynamo.graph_break()
    return x.cos() * 3


def keys(session, **columns):
    """The keys of the compiles with these values."""
    frame = session.compiles
    for name, value in columns.items():
        frame = frame[frame[name] == value]
    return frame["compile_key"].tolist()


def test_each_attempt_has_a_key_and_its_backward_has_the_same():
    with cd.watch(detail="full") as session:
        train(compiled(left), 3, 4, 5)
    forward, backward = keys(session, trigger="dynamo"), keys(session, trigger="lazy_backward")
    assert len(set(forward)) == len(forward) == 3 and sorted(backward) == sorted(forward)
    for table in TABLES:
        frame = getattr(session, table)
        rows = frame[frame["compile_id"].notna()]
        assert set(rows["compile_key"]) <= set(forward), table
    token, _, number = forward[0].partition(".")
    assert len(token) == 8 and int(token, 16) >= 0 and number.isdecimal()


def test_a_recompile_names_the_attempts_that_made_the_entries():
    with cd.watch(detail="full") as session:
        train(compiled(left), 3, 4, 5)
    first, second, third = keys(session, trigger="dynamo")
    assert session.recompiles["compile_key"].tolist() == [second, third]
    failures = session.guard_failures
    assert set(failures["entry_compile_key"]) == {first, second}
    assert set(session.recompiles["closest_compile_key"]) <= {first, second}
    spent = session.compiles.groupby("compile_key")["duration_s"].sum()
    lost = session.recompiles.set_index("compile_key")["lost_s"]
    assert all(abs(lost[key] - spent[key]) < 1e-9 for key in (second, third))


def test_an_entry_from_before_the_watch_has_no_key():
    f = compiled(left)
    f(torch.ones(3))
    with cd.watch(detail="full") as session:
        f(torch.ones(4))
    assert session.recompiles["compile_key"].notna().all() and session.recompiles["closest_compile_key"].isna().all()
    assert session.guard_failures["entry_compile_key"].isna().all()


def test_a_reset_lets_torch_reuse_ids_and_no_key():
    with cd.watch(detail="full") as session:
        for _ in range(3):
            torch._dynamo.reset()
            train(compiled(left), 3, 4)
    forward = keys(session, trigger="dynamo")
    assert session.compiles.query("trigger == 'dynamo'")["compile_id"].tolist() == ["0/0", "0/1"] * 3
    assert len(set(forward)) == 6 and sorted(keys(session, trigger="lazy_backward")) == sorted(forward)
    assert session.recompiles["closest_compile_key"].tolist() == forward[::2]


def test_an_attempt_that_torch_restarts_keeps_its_key():
    with cd.watch(detail="full") as session:
        compiled(right)(torch.ones(3))
    restarted = session.compiles[session.compiles["function"] == "right"]
    attempts = session.phases[session.phases["name"].str.startswith("compile_attempt_")]
    key = restarted["compile_key"].tolist()
    assert len(key) == 1 and restarted["attempt"].tolist() == [1]
    assert (attempts["compile_key"] == key[0]).sum() == 2
    assert session.graph_breaks["compile_key"].tolist() == key


def test_two_threads_whose_compiles_have_the_same_id():
    """After a reset one thread compiles the backward of 0/0, and meanwhile the other one a frame that is 0/0 again."""
    was_reset, in_backward, resume, raised = threading.Event(), threading.Event(), threading.Event(), []

    def compile_forward(graph, inputs):
        return make_boxed_func(graph.forward)

    def compile_backward(graph, inputs):
        in_backward.set()
        assert resume.wait(300)
        return make_boxed_func(graph.forward)

    def run():
        backend = aot_autograd(fw_compiler=compile_forward, bw_compiler=compile_backward)
        try:
            result = torch.compile(left, backend=backend, dynamic=False)(torch.ones(3, requires_grad=True))
            ready.set()
            assert was_reset.wait(300)
            result.sum().backward()
        except BaseException as error:
            raised.append(error)

    ready = threading.Event()
    torch._dynamo.reset()
    with cd.watch(detail="full") as session:
        thread = threading.Thread(target=run)
        thread.start()
        assert ready.wait(300)
        torch._dynamo.reset()
        was_reset.set()
        assert in_backward.wait(300)
        train(compiled(right), 3)
        resume.set()
        thread.join()
    assert raised == []
    check_threads(session)


def check_threads(session):
    compiles = session.compiles
    named = compiles.groupby("compile_key")["function"].agg(set)
    assert all(len(functions) == 1 for functions in named), "each key has one function"
    left_forward, left_backward = compiles[compiles["function"] == "left"].sort_values("time").to_dict("records")
    [right_forward] = compiles.query("function == 'right' and trigger == 'dynamo'").to_dict("records")
    assert left_forward["compile_id"] == left_backward["compile_id"] == right_forward["compile_id"] == "0/0"
    assert left_forward["compile_key"] == left_backward["compile_key"] != right_forward["compile_key"]
    assert left_backward["time"] < right_forward["time"], "the backward was being compiled all the time"
    backward = session.phases.query("name == 'entire_backward_compile'")
    assert left_forward["compile_key"] in set(backward["compile_key"])
    assert session.graph_breaks["compile_key"].tolist() == [right_forward["compile_key"]]
