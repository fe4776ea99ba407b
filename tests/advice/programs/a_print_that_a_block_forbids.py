import contextlib
import io

import torch


@torch.compile
def forward(x):
    x = x + 1
    with torch._dynamo.error_on_graph_break(True):
        y = x * 2
        print("forward")
        return y + 1


try:
    with contextlib.redirect_stdout(io.StringIO()):
        results = forward(torch.ones(4))
except torch._dynamo.exc.Unsupported:
    results = "failed"
