import contextlib
import io

import torch


@torch.compile(fullgraph=True)
def forward(x):
    y = x * 2
    print("forward")
    return y + 1


try:
    with contextlib.redirect_stdout(io.StringIO()):
        results = forward(torch.ones(4))
except torch._dynamo.exc.Unsupported:
    results = "failed"
