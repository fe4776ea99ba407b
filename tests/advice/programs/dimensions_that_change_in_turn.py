import torch


@torch.compile
def normalize(x):
    return x / x.amax((1, 2), keepdim=True)


results = []
for shape in ((4, 8, 16), (6, 8, 16), (6, 10, 16), (6, 10, 20), (5, 9, 18)):
    x = torch.ones(shape)
    results.append(normalize(x))
