"""Small programs that are captured in CUDA graphs, or not, each for a reason of its own."""

import torch

DEVICE = "cuda"


def ones(*sizes, **options):
    return torch.ones(*(sizes or (64,)), device=DEVICE, **options)


def captured(function, **options):
    return torch.compile(function, **({"mode": "reduce-overhead"} | options))


def steps(compiled, *inputs, n=3):
    """Call it n times with copies of the inputs, without gradients; what it computed, and it itself."""
    with torch.no_grad():
        results = [copies(compiled(*inputs)) for _ in range(n)]
    return compiled, results


def copies(result):
    return [copies(one) for one in result] if isinstance(result, (list, tuple)) else result.clone().cpu()


@torch.library.custom_op("compilediag_tests::unsafe", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def unsafe(x: torch.Tensor) -> torch.Tensor:
    """An operation that says of itself that it can't be captured."""
    return x * 2


@torch.library.custom_op("compilediag_tests::waits", mutates_args=())
def waits(x: torch.Tensor) -> torch.Tensor:
    """An operation that can't be captured, as it waits for the GPU, and does not say so."""
    return x + x.sum().item() * 0


unsafe.register_fake(torch.empty_like)
waits.register_fake(torch.empty_like)


def inference():
    return steps(captured(lambda x: x.sin() + 1), ones())


def training():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(DEVICE)
    compiled = captured(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad(set_to_none=True)
        loss = compiled(ones(8, 16)).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone().cpu())
    return compiled, losses


def parameter_moves():
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 16, device=DEVICE)
    compiled = captured(model)
    results = [steps(compiled, ones(4, 16), n=4)]
    model.weight.data = torch.zeros(16, 16, device=DEVICE)
    results.append(steps(compiled, ones(4, 16)))
    return compiled, [one for _, one in results]


def two_graphs(choose, n=7, pass_on=lambda x: x):
    """The output of one graph is the input of another; `choose` says at each step which, and what stays alive."""
    first, second = captured(lambda x: (x + 1, x + 2, x + 3, x + 4)), captured(lambda y: y * 3)
    kept, results = [], []
    with torch.no_grad():
        for step in range(n):
            kept.clear()
            torch.compiler.cudagraph_mark_step_begin()
            outputs = list(first(ones()))
            chosen, keep = choose(step)
            kept += [outputs[i] for i in keep]
            chosen = pass_on(outputs[chosen])
            outputs.clear()
            results.append(copies(second(chosen)))
            del chosen
    return first, second, results


def input_of_a_graph_moves():
    return two_graphs(lambda step: (0 if step < 4 else 1, []))


def output_stays_alive():
    return two_graphs(lambda step: (0, [] if step < 4 else [1]), n=8)


def mutated_input():
    def function(x):
        x.add_(1)
        return x * 2

    return steps(captured(function), ones(), n=4)


def mutated_buffer():
    torch.manual_seed(0)
    return steps(captured(torch.nn.BatchNorm1d(16, device=DEVICE)), torch.randn(8, 16, device=DEVICE), n=5)


def mutated_constant():
    def function(x):
        counter = torch.zeros((), device=DEVICE)
        counter.add_(2)
        return x * counter

    return steps(captured(function), ones())


def from_host():
    return steps(captured(lambda x, y: (x.sin() + y.to(DEVICE)).cos()), ones(), torch.ones(64))


def to_host():
    return steps(captured(lambda x: (x.sin() + 1).cpu()), ones())


def factory():
    return steps(
        captured(lambda x: x + torch.arange(64, device=DEVICE) + torch.full((64,), 3.0, device=DEVICE)), ones()
    )


def resize(x):
    y = x.clone()
    y.resize_(20)
    return y.fill_(2)


def fill_nothing(x):
    y = x.clone()
    nothing = y[:0]
    y.fill_(2)
    nothing.fill_(3)
    return y, nothing


def resized():
    return steps(captured(resize), torch.empty(0, device=DEVICE))


def dead_fill():
    return steps(captured(fill_nothing), ones(20))


def sizes(**options):
    compiled = captured(lambda x: x.sin() + 1, dynamic=True)
    with torch._inductor.config.patch(options):
        return compiled, [steps(compiled, ones(size, 3))[-1] for size in (4, 5, 6)]


def unsafe_operation():
    return steps(captured(lambda x: unsafe(x.sin()).cos()), ones())


def many_graphs(**options):
    """More re-records of one function than are allowed."""
    limits = torch._inductor.config.patch({"triton.cudagraph_unexpected_rerecord_limit": 1})
    with limits, torch._dynamo.config.patch(inline_inbuilt_nn_modules=False):  # torch 2.11 counts only without it
        return two_graphs(lambda step: (max(0, step - 8), []), n=12, **options)


def pending_backward():
    compiled = captured(torch.nn.Linear(16, 16, device=DEVICE))
    return compiled, [compiled(ones(4, 16)) for _ in range(12)]


def warmed_up_for_ever():
    with torch._inductor.config.patch({"triton.force_cudagraphs_warmup": True}):
        return steps(captured(lambda x: x.sin() + 1), ones(), n=10)


def without_trees():
    with torch._inductor.config.patch({"triton.cudagraph_trees": False}):
        return steps(captured(lambda x: x.sin() + 1), ones())


def not_at_once(function):
    """The function, with the error that each call raises instead of it."""

    def run():
        try:
            return function()
        except Exception as error:
            return error

    return run


def failing_capture():
    """Warms up, and fails when it is captured; also what two more calls give after that."""
    compiled = captured(lambda x: waits(x.sin()).cos())
    with torch.no_grad():
        return compiled, [not_at_once(lambda: copies(compiled(ones())))() for _ in range(3)]


def out_of_memory():
    """Warms up, then has too little memory to be captured, then has enough again."""
    big = torch.ones(64 * 2**20, device=DEVICE)
    compiled = captured(lambda x: (x.sin(), x.cos()))
    call = not_at_once(lambda: copies([one[:2] for one in compiled(big)]))
    with torch.no_grad():
        results = [call()]
        torch.cuda.empty_cache()
        allowed = torch.cuda.memory_reserved() + 2**20
        torch.cuda.set_per_process_memory_fraction(allowed / torch.cuda.get_device_properties(0).total_memory)
        results.append(call())
        torch.cuda.set_per_process_memory_fraction(1.0)
        return compiled, [*results, call(), call()]


#: Programs that compute the same watched or not.
ALL = (
    inference, training, parameter_moves, input_of_a_graph_moves, output_stays_alive, mutated_input, mutated_buffer,
    mutated_constant, from_host, to_host, factory, resized, dead_fill, sizes, unsafe_operation, many_graphs,
    warmed_up_for_ever, without_trees, failing_capture, out_of_memory,
)  # fmt: skip
