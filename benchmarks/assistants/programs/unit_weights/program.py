"""Project data onto random directions, one after the other."""

import torch

torch.manual_seed(54)


class Projection:
    def __init__(self, number, width):
        self.name = f"direction {number}"
        self.direction = torch.nn.functional.normalize(torch.randn(width), dim=0)


@torch.compile(backend="aot_eager")
def project(x, projection):
    values = x @ projection.direction
    spread = values.std()
    return {projection.name: spread, "kurtosis": ((values - values.mean()) / spread).pow(4).mean()}


x = torch.randn(200, 16)
spreads, kurtosis = {}, 0.0
for number in range(10):
    found = project(x, Projection(number, 16))
    kurtosis += found.pop("kurtosis").item()
    spreads.update(found)
print(f"result: {kurtosis:.4f} {sum(spread.item() for spread in spreads.values()):.4f} {len(spreads)}")
