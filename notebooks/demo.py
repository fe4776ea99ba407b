"""Four ordinary ways to make torch.compile compile again, each in a few lines; runs on a CPU in about a minute.
Why it is slow is told by `compilediag run --report demo.html notebooks/demo.py`."""

import time

import torch


class Scaler(torch.nn.Module):
    """Counts its own steps: the count is a guard, so a new value is a new compile."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 16)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return torch.relu(self.linear(x)) * (1 + self.step % 3)


@torch.compile(dynamic=False)
def normalize(batch):
    """Every new batch size fails the size guard; dynamic=False keeps torch from making it dynamic by itself."""
    return (batch - batch.mean(dim=0)) / (batch.std(dim=0) + 1e-5)


@torch.compile
def activate(x, mode):
    """A string argument is compared by value."""
    return torch.tanh(x) if mode == "tanh" else torch.sigmoid(x) * len(mode)


@torch.compile
def clip(x):
    """A branch on what a tensor holds breaks the graph in two."""
    if x.abs().max() > 1:
        return x / x.abs().max()
    return x


def calls():
    """What the program does: one call after the other."""
    for size in (4, 6, 7, 9, 12):
        yield lambda size=size: normalize(torch.randn(size, 16))

    scaler = torch.compile(Scaler())
    for _ in range(4):
        yield lambda: scaler(torch.randn(8, 16)).sum().backward()

    for mode in ("tanh", "sigmoid", "gate"):
        yield lambda mode=mode: activate(torch.randn(8), mode)

    for scale in (0.1, 10.0):
        yield lambda scale=scale: clip(torch.randn(8) * scale)


def main():
    torch.manual_seed(0)
    seconds = []
    for call in calls():
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    slow = sum(s > 0.1 for s in seconds)
    print(f"demo: {len(seconds)} small calls took {sum(seconds):.0f} s; {slow} of them were slow, not only the first")


if __name__ == "__main__":
    main()
