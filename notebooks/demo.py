"""Four ordinary ways to make torch.compile compile again, each in a few lines; runs on a CPU in about a minute.

    compilediag run --report demo.html notebooks/demo.py
"""

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


def main():
    torch.manual_seed(0)
    for size in (4, 6, 7, 9, 12):
        normalize(torch.randn(size, 16))

    scaler = torch.compile(Scaler())
    for _ in range(4):
        scaler(torch.randn(8, 16)).sum().backward()

    for mode in ("tanh", "sigmoid", "gate"):
        activate(torch.randn(8), mode)

    for scale in (0.1, 10.0):
        clip(torch.randn(8) * scale)
    print("demo: done")


if __name__ == "__main__":
    main()
