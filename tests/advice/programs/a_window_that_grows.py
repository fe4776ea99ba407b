import torch


@torch.compile(dynamic=False)
def attend(q, k, v, window):
    position = torch.arange(q.shape[0])
    distance = position[:, None] - position[None, :]
    mask = (distance >= 0) & (distance < window)
    return torch.softmax((q @ k.T).masked_fill(~mask, -1e9), -1) @ v


q = k = v = torch.linspace(0, 1, 64).reshape(16, 4)
results = []
for step in range(8):
    window = 2 + 2 * (step // 2)
    results.append(attend(q, k, v, window))
