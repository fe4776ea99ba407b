"""Call sites and names of real programs. The expected call and expression were written before the program ran."""

import asyncio
import contextlib
import functools
import inspect
import threading

import pytest
import torch

import compilediag
from compilediag.diagnosis import Evidence
from compilediag.diagnosis.causes.call_sites import CallSites
from compilediag.errors import CompilediagError
from compilediag.events import Compile

X, Y = torch.ones(3), torch.ones(3)
SCALE = 2.0
LIMIT = 3


def compiled(function):
    return torch.compile(function, backend="eager", dynamic=False)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 2

    def forward(self, x, scale=1.0):
        return x * self.count * scale


class Runner:
    def __init__(self):
        self.model = Block()
        self.count = 4
        self.fast = compiled(self.step)

    def step(self, x):
        return x + self.count

    def run(self, x):
        return self.fast(x)

    @compiled
    def method(self, x, y):
        return x + y + self.count


def log_calls(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


# Programs: (guarded value, expected expression, expected text of the call, program). A program gets a fresh compiled
# function `step(x, y=None, **kwargs)` and the name of the compiled code is "step", or the third of its result.


def step_of(name):
    def step(x, y=None, **kwargs):
        return x + 1 + (0 if y is None else y) + kwargs.get("ids", 0)

    step.__code__ = step.__code__.replace(co_name=name)
    return compiled(step)


def keyword(step):
    step(y=Y, x=X)


def multi_line(step):
    step(
        X,
        y=Y,
    )


def generator(step):
    list(step(x) for x in (X,))  # noqa: C400


def lambda_function(step):
    (lambda q: step(q, q))(X)  # noqa: PLC3002


def loader(step):
    data = torch.utils.data.DataLoader([{"x": X}], batch_size=1)
    for batch in data:
        step(batch["x"])


def decorator(step):
    log_calls(step)(X, y=Y)


def no_grad(step):
    torch.no_grad()(step)(X, Y)


def context_decorator(step):
    @contextlib.contextmanager
    def region():
        yield

    region()(step)(X, Y)


def mapped(step):
    list(map(step, [X]))


def partial(step):
    functools.partial(step, X)(y=Y)


def awaited(step):
    async def run():
        step(X, Y)

    asyncio.run(run())


def in_a_thread(step):
    thread = threading.Thread(target=lambda: step(X))
    thread.start()
    thread.join()


def executed(step):
    exec("step(X, Y)", {"step": step, "X": X, "Y": Y})


def call_through(step):
    outer(step, a=X, b=Y)


def outer(step, **kwargs):
    step(kwargs["a"], y=kwargs["b"])


#: Program, guarded value, expected name, expected call; None for a name that does not exist. How calls are
#: spelled is in tests/unit/test_call_sites.py; real frames are between the call and the compiled code here.
PROGRAMS = [
    (keyword, "x.size()[0]", "X.shape[0]", "step(y=Y, x=X)"),
    (multi_line, "y.size()[0]", "Y.shape[0]", "step(\n        X,\n        y=Y,\n    )"),
    (generator, "x.size()[0]", "x.shape[0]", "step(x)"),
    (lambda_function, "y.size()[0]", "q.shape[0]", "step(q, q)"),
    (loader, "x.size()[0]", 'batch["x"].shape[0]', 'step(batch["x"])'),
    (decorator, "y.size()[0]", "Y.shape[0]", "log_calls(step)(X, y=Y)"),
    (no_grad, "y.size()[0]", "Y.shape[0]", "torch.no_grad()(step)(X, Y)"),
    (context_decorator, "y.size()[0]", "Y.shape[0]", "region()(step)(X, Y)"),
    (mapped, "x.size()[0]", None, "list(map(step, [X]))"),
    (partial, "y.size()[0]", "Y.shape[0]", "functools.partial(step, X)(y=Y)"),
    (partial, "x.size()[0]", "X.shape[0]", "functools.partial(step, X)(y=Y)"),
    (awaited, "y.size()[0]", "Y.shape[0]", "step(X, Y)"),
    (in_a_thread, "x.size()[0]", "X.shape[0]", "step(X)"),
    (executed, "y.size()[0]", None, None),
    (call_through, "x.size()[0]", 'kwargs["a"].shape[0]', 'step(kwargs["a"], y=kwargs["b"])'),
    (keyword, "LIMIT", "LIMIT", "step(y=Y, x=X)"),
]


class Recorded:
    """One session of all programs: the compiled function of each has the program's name."""

    def __init__(self):
        with compilediag.watch(detail="lean") as self.session:
            for program in dict.fromkeys(program for program, *_ in PROGRAMS):
                program(step_of(program.__name__))
            self.run_modules()
            self.run_breaks()
        self.sites = CallSites(Evidence.of(self.session.data))
        self.keys = {}
        for row in self.session.data.rows(Compile):
            self.keys.setdefault(row.function, row.compile_key)

    def run_modules(self):
        model, runner = torch.compile(Block(), backend="eager"), Runner()
        self.rename(Block.forward, "forward_of_model")
        model(X, scale=SCALE)
        runner.run(X)
        runner.method(X, y=Y)

    @staticmethod
    def rename(function, name):
        function.__code__ = function.__code__.replace(co_name=name)

    def run_breaks(self):
        def broken(x, y, n):
            x = x + 1
            torch._dynamo.graph_break()
            z = x * y
            torch._dynamo.graph_break()
            return z * y * n

        compiled(broken)(X, Y, LIMIT)

    def name(self, function, source):
        return self.sites.name(self.keys[function], source)

    def find(self, function):
        return self.sites.find(self.keys[function])


@pytest.fixture(scope="module")
def recorded():
    torch._dynamo.reset()
    return Recorded()


@pytest.mark.parametrize(("program", "source", "expected", "call"), PROGRAMS)
def test_the_call_and_the_name_are_the_users(recorded, program, source, expected, call):
    name, site = recorded.name(program.__name__, source), recorded.find(program.__name__)
    assert name.expression == expected and (name.reason is None) == (expected is not None), name
    assert site.call == call
    if call is not None:
        lines, first = inspect.getsourcelines(program)
        assert site.file == __file__ and site.code
        if program is not call_through:
            assert first <= site.line < first + len(lines)


def test_a_compiled_module_is_the_object_of_its_forward(recorded):
    assert recorded.name("forward_of_model", "self.count").expression == "model.count"
    assert recorded.name("forward_of_model", "scale").expression == "SCALE"
    assert recorded.find("forward_of_model").call == "model(X, scale=SCALE)"


def test_methods_name_their_object(recorded):
    assert recorded.name("method", "self.count").expression == "runner.count"
    assert recorded.name("method", "y.size()[0]").expression == "Y.shape[0]"
    assert recorded.name("step", "self.count").expression == "self.count"
    assert recorded.find("step").code == "return self.fast(x)" and recorded.find("step").function == "run"


def test_after_a_graph_break_arguments_keep_their_names_until_they_are_assigned(recorded):
    resumed = sorted(
        (name for name in recorded.keys if "resume_in_broken" in name), key=lambda n: int(n[-3:].strip("_"))
    )
    first, second = resumed
    assert recorded.name("broken", "x.size()[0]").expression == "X.shape[0]"
    assert recorded.name(first, "y.size()[0]").expression == "Y.shape[0]"
    assert "`x` is assigned again in broken" in recorded.name(first, "x.size()[0]").reason
    assert recorded.name(second, "n").expression == "LIMIT"
    assert "`z` is a local variable of broken" in recorded.name(second, "z.size()[0]").reason
    assert recorded.find(second).call == "compiled(broken)(X, Y, LIMIT)"


def test_what_is_the_users_own_code_is_kept_in_the_session(tmp_path):
    with compilediag.watch(detail="lean", my_code=[str(tmp_path), "package.model"]) as session:
        pass
    assert session.meta["my_code"] == [str(tmp_path), "package.model"] and session.meta["library_folders"]
    with pytest.raises(CompilediagError, match="my_code has 3"):
        compilediag.start(my_code=[3])
    assert compilediag.current() is None


def test_a_module_of_torch_that_is_compiled_itself_has_the_name_that_is_called():
    first, layers, replaced, last, other = (
        torch.nn.Sequential(torch.nn.Linear(len(X), width)) for width in range(1, 6)
    )
    replaced.forward = torch.compile(replaced.forward, backend="eager")
    model, parts = torch.compile(first, backend="eager"), {"net": torch.compile(last, backend="eager")}
    method = torch.compile(other.forward, backend="eager")
    torch._dynamo.reset()
    with compilediag.watch(detail="lean") as session:
        model(X)
        torch.compile(layers, backend="eager")(X)
        parts["net"](X)
        replaced(X)
        method(X)
    sites, found = CallSites(Evidence.of(session.data)), {}
    for row in session.data.rows(Compile):
        source = "fn[0].weight" if len(found) < 3 else "fn.__self__[0].weight"
        found[sites.find(row.compile_key).call] = sites.name(row.compile_key, source).expression
    assert found == {
        "model(X)": "model[0].weight",
        'torch.compile(layers, backend="eager")(X)': "layers[0].weight",
        'parts["net"](X)': 'parts["net"][0].weight',
        "replaced(X)": "replaced[0].weight",
        "method(X)": "method.__self__[0].weight",
    }
