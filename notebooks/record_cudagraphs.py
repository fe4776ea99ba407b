"""Record a session of CUDA graphs on a GPU: `python notebooks/record_cudagraphs.py OUT.cdiag`.

The session has small programs, written like training and inference loops, whose CUDA graphs are replayed, captured
repeatedly, partitioned, skipped, or disabled by torch. The notebook 03_cudagraphs reads the session.
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


def make_batch(size=16):
    return torch.randn(size, WIDTH, device="cuda")


def capture(function, **options):
    return torch.compile(function, mode="reduce-overhead", **options)


def train(steps=300):
    """Run forward, backward and optimizer step. The graphs are warmed up, captured, and then replayed."""
    net = Net().cuda()
    model = capture(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        model(make_batch()).square().mean().backward()
        optimizer.step()
    return model


def encode(sizes=(8, 12, 16, 20, 24, 28, 32, 40, 48, 64), calls=12):
    """Run batches of many sizes. Each size needs its own graph: dynamic shapes do not avoid captures."""
    model = capture(Encoder().cuda().eval(), dynamic=True)
    for size in sizes:
        for _ in range(calls):
            model(make_batch(size))
    for size in sizes * 4:
        model(make_batch(size))
    return model


def average(swaps=8, calls=6):
    """Move the weights to new memory every few calls, as moving averages often do. Each move causes another capture."""
    net = Averaged().cuda().eval()
    model = capture(net)
    for _ in range(swaps):
        for _ in range(calls):
            model(make_batch())
        net.first.weight.data = net.first.weight.data.clone()
    return model


def update_cache(cache, x):
    cache.add_(x)
    return cache * 2


def decode(calls=40):
    """Write to a cache that is an input. torch skips CUDA graphs when the function runs."""
    model, cache = capture(update_cache), make_batch()
    for _ in range(calls):
        model(cache, make_batch())
    return model


def mask_on_host(x, mask):
    return (x.sin() * mask.to(x.device)).cos()


def scale_on_host(x, scale):
    return x * scale.to(x.device) + 1


def from_host(calls=40):
    """Use a CPU tensor. torch partitions the graph at the copy, or skips CUDA graphs if partitioning is off."""
    cut, skipped, mask = capture(mask_on_host), capture(scale_on_host), torch.ones(16, WIDTH)
    for _ in range(calls):
        cut(make_batch(), mask)
    with torch._inductor.config.patch(graph_partition=False):
        for _ in range(calls):
            skipped(make_batch(), mask)
    return cut, skipped


@torch.library.custom_op("record_cudagraphs::log_norm", mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,))
def log_norm(x: torch.Tensor) -> torch.Tensor:
    return x / x.norm()


log_norm.register_fake(torch.empty_like)


def normalised(x):
    return log_norm(x.sin()).cos() + 1


def normalize(calls=40):
    """Call an operator with the tag `cudagraph_unsafe`. torch captures one graph before it and one after it."""
    model = capture(normalised)
    for _ in range(calls):
        model(make_batch())
    return model


def heads(x):
    return x + 1, x + 2, x + 3, x + 4, x + 5


def tail(y):
    return y * 3


def route(calls=40):
    """Pass a different output of the first graph to the second at each call, until torch stops capturing it."""
    limits = torch._inductor.config.patch({"triton.cudagraph_unexpected_rerecord_limit": 2})
    first, second = capture(heads), capture(tail)
    with limits, torch._dynamo.config.patch(inline_inbuilt_nn_modules=False):
        for call in range(calls):
            torch.compiler.cudagraph_mark_step_begin()
            second(first(make_batch())[0 if call < 10 else call % 5])
    return first, second


def collect(calls=12):
    """Keep outputs whose backward has not run. torch never captures the function."""
    model = capture(Collected().cuda())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, [model(make_batch()) for _ in range(calls)]


def capture_manually(calls=100):
    """Capture and replay a graph in the program itself."""
    x, graph = make_batch(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.sin() + 1
    for _ in range(calls):
        graph.replay()
    return graph


def record(path):
    """Record all programs in the session file `path`."""
    torch.manual_seed(0)
    with cd.watch(path, detail="lean", replays=True) as session:
        kept = [train()]
        with torch.no_grad():
            kept += [program() for program in (encode, average, decode, from_host, normalize, route, capture_manually)]
        kept.append(collect())
    print(session.cudagraphs["action"].value_counts().to_string())
    print(f"{path}: {Path(path).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    from recording import main

    main(__file__, __doc__)
