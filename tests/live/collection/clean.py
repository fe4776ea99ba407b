"""Programs that have nothing wrong: each compiles what it has to, once, and is to give no finding at all."""

import torch
from torch.nn.utils import prune

from tests.live.programs import calls

X = torch.ones(4)


def sizes_that_are_marked(compiled):
    f, found = compiled(lambda x: x * 2), []
    for n in (4, 6, 8):
        x = torch.ones(n)
        torch._dynamo.mark_dynamic(x, 0)
        found.append(f(x))
    return found


def a_model_that_trains(compiled):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    f = compiled(model)
    for _ in range(3):
        optimizer.zero_grad()
        f(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def an_optimizer_that_is_compiled(compiled):
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.Adam([weight], lr=torch.tensor(0.1))
    step = compiled(optimizer.step)
    for _ in range(3):
        weight.grad = torch.ones(4)
        step()
    return weight.detach()


def room_for_all_keys(compiled):
    def attend(x, keys, place):
        keys.index_copy_(0, place, x)
        return torch.softmax(x @ keys.T, -1) @ keys

    f, keys = compiled(attend), torch.zeros(8, 4)
    return [f(torch.ones(1, 4), keys, torch.tensor([place])) for place in range(5)]


def a_schedule_of_a_tensor(compiled):
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight], lr=torch.tensor(0.1))
    schedule, step = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5), compiled(optimizer.step)
    for _ in range(4):
        weight.grad = torch.ones(4)
        step()
        schedule.step()
    return weight.detach()


def a_mode_inside(compiled):
    def f(x):
        with torch.no_grad():
            scale = x.mean()
        return x / scale

    g = compiled(f)
    return [g(torch.ones(4)) for _ in range(3)]


def evaluation_without_gradients(compiled):
    with torch.no_grad():
        calls(torch.nn.Linear(4, 4).eval(), *[(torch.zeros(2, 4),)] * 3)(compiled)


def a_transform_that_is_compiled(compiled):
    loss, step = compiled(torch.sum), compiled(torch.func.vmap(torch.func.grad(lambda x: x.square().sum())))
    return [(loss(X), step(torch.ones(3, 4))) for _ in range(3)]


def a_model_that_is_pruned_first(compiled):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    prune.l1_unstructured(model[0], "weight", amount=0.5)
    return calls(model, *[(torch.ones(2, 4),)] * 3)(compiled)


def adder():
    return lambda x: x + 1


#: Name -> program.
CLEAN = {
    "the_same_again": calls(lambda x: x * 2, *[(X,)] * 5),
    "sizes_that_are_dynamic": calls(lambda x: x * 2, *[(torch.ones(n),) for n in (4, 6, 8)], dynamic=True),
    "other_functions_of_one_file": lambda compiled: [
        compiled(f)(X) for f in (lambda x: x + 1, lambda x: x + 2, lambda x: x + 3)
    ],
    "numbers_as_tensors": calls(lambda x, k: x * k, *[(X, torch.tensor(k)) for k in (0.5, 0.25, 0.1)]),
    "repeated_blocks": calls(
        torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(4)]), *[(torch.ones(2, 4),)] * 2
    ),
    "containers_that_stay": calls(
        lambda batch, scales: batch["a"] * scales[0] + batch["b"] * scales[1],
        *[({"a": torch.ones(4), "b": torch.ones(4)}, [2, 3]) for _ in range(3)],
    ),
    "fresh_closures_of_one_function": calls(lambda x, g: g(x), *[(X, adder()) for _ in range(3)]),
    "the_whole_graph": calls(lambda x: (x.sin() + x.cos()).relu(), *[(X,)] * 3, fullgraph=True),
    "batch_normalization": calls(
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)), *[(torch.ones(2, 3, 8, 8),)] * 4
    ),
    "a_model_that_is_pruned_first": a_model_that_is_pruned_first,
    "room_for_all_keys": room_for_all_keys,
    "a_schedule_of_a_tensor": a_schedule_of_a_tensor,
    "a_mode_inside": a_mode_inside,
    "sizes_that_are_marked": sizes_that_are_marked,
    "a_model_that_trains": a_model_that_trains,
    "an_optimizer_that_is_compiled": an_optimizer_that_is_compiled,
    "evaluation_without_gradients": evaluation_without_gradients,
    "a_transform_that_is_compiled": a_transform_that_is_compiled,
}
