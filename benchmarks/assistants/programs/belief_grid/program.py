"""A robot estimates where it is on a grid: predict, weigh, normalize."""

import copy

import torch
import torch.nn.functional as F

torch.manual_seed(5)
kernel = torch.softmax(torch.randn(9), 0).reshape(1, 1, 3, 3)


@torch.compile(backend="aot_eager")
def update(belief, likelihood):
    predicted = F.conv2d(belief[None, None], kernel, padding=1)[0, 0]
    before = copy.deepcopy(predicted)
    weighed = predicted * likelihood
    weighed = weighed / weighed.sum()
    return weighed, (weighed - before).abs().sum()


belief = torch.full((20, 20), 1 / 400)
moved = 0.0
for _ in range(6):
    belief, change = update(belief, torch.rand(20, 20))
    moved += change.item()
print(f"result: {moved:.5f} {belief.max():.5f}")
