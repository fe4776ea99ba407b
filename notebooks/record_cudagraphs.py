"""Record a session of CUDA graphs on a GPU: `python notebooks/record_cudagraphs.py OUT.cdiag`.

Small programs that are captured and replayed, captured again and again, cut, skipped and given up, each as it
happens in a training or inference loop. The notebook 03_cudagraphs reads the session.
"""

import warnings
from pathlib import Path

import torch

import compilediag as cd

WIDTH = 32


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.second = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return self.second(self.first(x).relu())


class Encoder(Net):
    def forward(self, x):
        return self.second(self.first(x).tanh()).softmax(-1)


class Averaged(Net):
    def forward(self, x):
        return self.second(self.first(x).sigmoid())


class Collected(Net):
    def forward(self, x):
        return self.second(self.first(x)) - x


def batch(size=16):
    return torch.randn(size, WIDTH, device="cuda")


def captured(function, **options):
    return torch.compile(function, mode="reduce-overhead", **options)


def train(steps=300):
    """Forward, backward, step: warmed up, recorded, and from then on replayed."""
    net = Net().cuda()
    model = captured(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        model(batch()).square().mean().backward()
        optimizer.step()
    return model


def encode(sizes=(8, 12, 16, 20, 24, 28, 32, 40, 48, 64), calls=12):
    """Batches of many sizes: a graph for each, as symbolic sizes do not save a capture."""
    model = captured(Encoder().cuda().eval(), dynamic=True)
    for size in sizes:
        for _ in range(calls):
            model(batch(size))
    for size in sizes * 4:
        model(batch(size))
    return model


def average(swaps=8, calls=6):
    """Weights in new memory every few calls, as moving averages often do it: recorded again each time."""
    net = Averaged().cuda().eval()
    model = captured(net)
    for _ in range(swaps):
        for _ in range(calls):
            model(batch())
        net.first.weight.data = net.first.weight.data.clone()
    return model


def update_cache(cache, x):
    cache.add_(x)
    return cache * 2


def decode(calls=40):
    """A cache that is an input and is written to: skipped when it runs."""
    model, cache = captured(update_cache), batch()
    for _ in range(calls):
        model(cache, batch())
    return model


def mask_on_host(x, mask):
    return (x.sin() * mask.to(x.device)).cos()


def scale_on_host(x, scale):
    return x * scale.to(x.device) + 1


def from_host(calls=40):
    """A tensor of the CPU: the graph is cut around its copy, or skipped where cutting is switched off."""
    cut, skipped, mask = captured(mask_on_host), captured(scale_on_host), torch.ones(16, WIDTH)
    for _ in range(calls):
        cut(batch(), mask)
    with torch._inductor.config.patch(graph_partition=False):
        for _ in range(calls):
            skipped(batch(), mask)
    return cut, skipped


@torch.library.custom_op("record_cudagraphs::log_norm", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def log_norm(x: torch.Tensor) -> torch.Tensor:
    return x / x.norm()


log_norm.register_fake(torch.empty_like)


def normalised(x):
    return log_norm(x.sin()).cos() + 1


def normalise(calls=40):
    """An operation that says it can't be captured: two graphs with it between them."""
    model = captured(normalised)
    for _ in range(calls):
        model(batch())
    return model


def heads(x):
    return x + 1, x + 2, x + 3, x + 4, x + 5


def tail(y):
    return y * 3


def route(calls=40):
    """The output of one graph that goes into another is a different one each time, until torch gives up."""
    limits = torch._inductor.config.patch({"triton.cudagraph_unexpected_rerecord_limit": 2})
    first, second = captured(heads), captured(tail)
    with limits, torch._dynamo.config.patch(inline_inbuilt_nn_modules=False):
        for call in range(calls):
            torch.compiler.cudagraph_mark_step_begin()
            second(first(batch())[0 if call < 10 else call % 5])
    return first, second


def collect(calls=12):
    """Outputs that still need their backward pile up: never captured."""
    model = captured(Collected().cuda())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, [model(batch()) for _ in range(calls)]


def by_hand(calls=100):
    """A graph that the program captures itself."""
    x, graph = batch(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.sin() + 1
    for _ in range(calls):
        graph.replay()
    return graph


def record(path):
    """Record all of the above into the session file `path`."""
    torch.manual_seed(0)
    with cd.watch(path, detail="lean", replays=True) as session:
        kept = [train()]
        with torch.no_grad():
            kept += [program() for program in (encode, average, decode, from_host, normalise, route, by_hand)]
        kept.append(collect())
    print(session.cudagraphs["action"].value_counts().to_string())
    print(f"{path}: {Path(path).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    from recording import main

    main(__file__, __doc__)
