"""Correct the response of a detector with a calibration table."""

import numpy as np
import torch

torch.manual_seed(31)
known = torch.linspace(0, 1, 21)
response = torch.sqrt(known)


@torch.compile(backend="aot_eager")
def correct(signal, gain):
    scaled = torch.sigmoid(signal * gain)
    fixed = torch.from_numpy(np.interp(scaled.numpy(), known.numpy(), response.numpy()).astype("float32"))
    return fixed - fixed.mean()


total = 0.0
for number in range(5):
    total += correct(torch.randn(400), torch.tensor(0.5 + number)).abs().sum().item()
print(f"result: {total:.3f}")
