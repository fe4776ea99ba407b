import torch


@torch.compile
def forward(x, scale):
    return x * scale


results = [forward(torch.ones(4), 2.0)]
with torch.compiler.set_stance("fail_on_recompile"):
    for length in (4, 6, 8):
        batch = torch.ones(length)
        try:
            results.append(forward(batch, 2.0))
        except RuntimeError:
            results.append("failed")
