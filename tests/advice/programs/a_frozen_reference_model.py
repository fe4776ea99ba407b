import copy

import torch


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(x).log_softmax(-1)


policy = Policy()
reference = copy.deepcopy(policy).requires_grad_(False)
compiled_policy, compiled_reference = torch.compile(policy), torch.compile(reference)
x = torch.ones(2, 4)
results = []
for _ in range(3):
    loss = (compiled_policy(x) - compiled_reference(x)).square().sum() + compiled_policy(x).sum()
    loss.backward()
    results.append(loss)
results.append(policy.lin.weight.grad)
