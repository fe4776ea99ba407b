"""Small programs of which each recompiles in its own way; each gives what it computed."""

import types

import torch


def compiled(function, **options):
    return torch.compile(function, **{"backend": "eager", **options})


def renamed(function, name):
    """The function with a code object of its own, of which the compiler has no entries."""
    code = function.__code__.replace(co_name=name)
    return types.FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)


def calls(function, *arguments, **options):
    """A program: `function` compiled once and called with each of `arguments`."""

    def program(compiled):
        f = compiled(function, **options)
        return [f(*args) for args in arguments]

    return program


def at_work(session):
    """name -> status of the sources of a session that have something to watch here, and were asked for."""
    idle = ("nothing_to_watch", "not_requested")
    rows = session.status()
    return {r["name"]: r for r in rows if r["status"] != "off" or r["reason_code"] not in idle}


def sizes():
    f = compiled(lambda x: x.sin() * 2 + 1)
    return [f(torch.arange(float(n))) for n in (3, 4, 5, 1, 6)]


def numbers():
    f = compiled(lambda x, n: x * n)
    return [f(torch.ones(2), n) for n in (1, 2, 3, 2.5, True)]


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0
        self.weight = torch.nn.Parameter(torch.arange(4.0))

    def forward(self, x):
        self.step += 1
        return x * self.weight + self.step


def attribute():
    module = Counter()
    f = compiled(module)
    return [f(torch.ones(4)).detach() for _ in range(4)]


def graph_breaks():
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        if y.sum() > 3:
            return y * 2
        return y - 1

    g = compiled(f)
    return [g(torch.ones(n)) for n in (1, 2)]


def aliases():
    f = compiled(lambda a, b: a.add_(1) + b)
    one, other = torch.ones(3), torch.zeros(3)
    base = torch.arange(6.0)
    return [f(one, other), f(one, one), f(other, one), f(base[:3], base[3:]), f(base[1:4], base[2:5]), base]


def containers():
    f = compiled(lambda d, xs: sum(d.values()) + sum(xs))
    one = torch.ones(2)
    return [f({"a": one}, [one]), f({"a": one, "b": one}, [one]), f({"c": one}, [one, one]), f({"a": one}, (one,))]


def kinds():
    f = compiled(lambda x: x + x)
    found = [f(torch.ones(2, dtype=d)) for d in (torch.float32, torch.float64, torch.int32)]
    return [*found, f(torch.ones(2, 2)), f(torch.ones(2, 2).t()), f(torch.ones(2, 3).t())]


SCALE = 1


def global_value():
    global SCALE
    f = compiled(lambda x: x * SCALE)
    found = []
    for scale in (1, 2, 3):
        SCALE = scale
        found.append(f(torch.ones(2)))
    return found


def backward():
    f = compiled(lambda x: (x * x).sum(), backend="aot_eager")
    found = []
    for n in (2, 3, 4):
        x = torch.arange(float(n), requires_grad=True)
        f(x).backward()
        found.append(x.grad)
    return [*found, f(torch.ones(2))]


def modes():
    f = compiled(lambda x: x + 1)
    with torch.no_grad():
        first = f(torch.ones(2, requires_grad=True))
    return [first, f(torch.ones(2, requires_grad=True)).detach(), f(torch.ones(2))]


def limit():
    with torch._dynamo.config.patch(recompile_limit=2):
        f = compiled(lambda x, name: x + len(name))
        return [f(torch.ones(2), "n" * n) for n in range(4)]


def sibling_calls():
    def inner(x, flag):
        return x + 1 if flag else x - 1

    f = compiled(lambda x, flags: [inner(x, flag) for flag in flags])
    return [y for flags in ([True], [False], [True, False]) for y in f(torch.ones(2), flags)]


ALL = (
    sizes, numbers, attribute, graph_breaks, aliases, containers, kinds, global_value, backward, modes, limit,
    sibling_calls,
)  # fmt: skip
