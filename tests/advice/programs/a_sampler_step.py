import torch


@torch.compile(dynamic=False)
def denoise(x, sigmas, index, guidance):
    return x - sigmas[index] * guidance


x, sigmas = torch.ones(4), torch.linspace(1, 0, 8)
results = []
for index in range(2, 6):
    guidance = 7.5 - index
    results.append(denoise(x, sigmas, index, guidance))
