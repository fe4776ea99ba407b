import torch


@torch.compile(dynamic=False)
def loss(prediction, targets):
    return sum((prediction.mean() - target["boxes"].mean()).square() for target in targets)


prediction = torch.ones(4)
results = []
for counts in ((3, 2), (1, 4, 2), (5,)):
    targets = [{"boxes": torch.ones(count, 4)} for count in counts]
    results.append(loss(prediction, targets))
