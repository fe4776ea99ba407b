import torch

weight = torch.nn.Parameter(torch.ones(4))
weight.grad = torch.full((4,), 2.0)


@torch.compile
def clip(scale):
    norm = torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)
    return norm * scale


results = clip(torch.ones(1))
