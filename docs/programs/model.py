"""The program of docs/plan.md: the sizes of `ids` change, and so does a counter."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(100, 8)
        self.step = 0

    def forward(self, ids):
        self.step += 1
        return self.embed(ids).sum(-1) * (1 + self.step % 3)


model = torch.compile(Model(), backend="aot_eager")
for shape in ((4, 16), (6, 16), (6, 24), (8, 24)):
    ids = torch.randint(100, shape)
    logits = model(ids)
    logits.sum().backward()
