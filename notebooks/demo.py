"""A small program that is slow because of recompiles and a graph break. It runs on a CPU in about a minute.

`compilediag run --report demo.html notebooks/demo.py` shows why it is slow.
"""

import time

import torch


class Scaler(torch.nn.Module):
    """Count steps in an integer. The compiled code has a guard on it, so each new value causes a recompile."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return torch.relu(self.linear(x)) * (1 + self.step % 3)


@torch.compile(dynamic=False)
def normalize(batch):
    """Fail the size guard at every new batch size. With dynamic=False, torch does not make the size dynamic."""
    return (batch - batch.mean(dim=0)) / (batch.std(dim=0) + 1e-5)


@torch.compile
def activate(x, mode):
    """Fail the guard on the value of the string argument at every new mode."""
    return torch.tanh(x) if mode == "tanh" else torch.sigmoid(x) * len(mode)


@torch.compile
def clip(x):
    """Break the graph: the branch depends on the data of a tensor."""
    if x.abs().max() > 1:
        return x / x.abs().max()
    return x


def make_calls():
    """Yield the calls of the program in order."""
    for size in (4, 6, 7, 9, 12, 16):
        yield lambda size=size: normalize(torch.randn(size, 16))

    scaler = torch.compile(Scaler())
    for _ in range(3):
        yield lambda: scaler(torch.randn(8, 16)).sum().backward()

    for mode in ("tanh", "sigmoid", "gate"):
        yield lambda mode=mode: activate(torch.randn(8), mode)

    for scale in (0.1, 10.0):
        yield lambda scale=scale: clip(torch.randn(8) * scale)


def main():
    torch.manual_seed(0)
    seconds = []
    for call in make_calls():
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    slow = sum(s > 0.1 for s in seconds)
    print(f"demo: {len(seconds)} small calls took {sum(seconds):.0f} s; {slow} of them took more than 0.1 s")


if __name__ == "__main__":
    main()
