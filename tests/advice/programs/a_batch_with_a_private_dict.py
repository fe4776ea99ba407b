import torch


class Batch:
    def __init__(self, **values):
        self._values = values

    def __getitem__(self, key):
        return self._values[key]


@torch.compile
def loss(batch):
    return (batch["x"] * 2).sum()


results = []
for length in (4, 6, 8):
    batch = Batch(x=torch.ones(length, 3))
    results.append(loss(batch))
