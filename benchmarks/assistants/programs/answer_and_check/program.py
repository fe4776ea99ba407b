"""Two workers that share a model: one answers requests, one checks them."""

import threading

import torch
from torch import nn

torch.manual_seed(33)
model = torch.compile(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)), backend="aot_eager")
inputs = torch.randn(8, 4, 16)
sums = {}


def serve():
    with torch.no_grad():
        sums["served"] = sum(model(x).abs().sum().item() for x in inputs)


def check():
    sums["checked"] = sum(model(x).square().sum().item() for x in inputs)


for work in (serve, check):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
print(f"result: {sums['served']:.4f} {sums['checked']:.4f}")
