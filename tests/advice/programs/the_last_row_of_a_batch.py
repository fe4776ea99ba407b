import torch


@torch.compile(dynamic=True)
def rms_norm(x, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


hidden = torch.arange(48.0).reshape(6, 2, 4) + 1
results = []
for rows in (hidden, hidden[-1:], hidden[:3], hidden[2:3]):
    results.append(rms_norm(rows))
