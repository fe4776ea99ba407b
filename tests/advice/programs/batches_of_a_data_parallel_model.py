import tempfile

import torch
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)
        self.outer = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


with tempfile.TemporaryDirectory() as folder:
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=0, world_size=1)
net = torch.compile(DistributedDataParallel(Net()))
results = []
for rows in (4, 6, 7):
    batch = torch.ones(rows, 8)
    results.append(net(batch))
    results[-1].sum().backward()
torch.distributed.destroy_process_group()
