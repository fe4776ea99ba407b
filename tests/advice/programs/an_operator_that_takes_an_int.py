import torch

library = torch.library.Library("smoothing", "DEF")
library.define("moving_sum(Tensor x, int window) -> Tensor")


@torch.library.impl("smoothing::moving_sum", "CompositeExplicitAutograd", lib=library)
def moving_sum(x, window):
    total = x.cumsum(-1)
    total[..., window:] -= x.cumsum(-1)[..., :-window]
    return total


@torch.library.register_fake("smoothing::moving_sum", lib=library)
def moving_sum_fake(x, window):
    return torch.empty_like(x)


@torch.compile
def smooth(x, window):
    return torch.ops.smoothing.moving_sum(x, window) / window


results = []
for window in (3, 5, 4, 6):
    results.append(smooth(torch.arange(16.0), window))

library._destroy()  # It may be defined again in this process.
