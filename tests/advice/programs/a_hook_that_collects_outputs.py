import torch


class Features:
    def __init__(self, module):
        self.outputs = []
        module.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.outputs.append(output)


student = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
features = Features(student[1])
compiled = torch.compile(student)
results = []
with torch.no_grad():
    for step in range(4):
        results.append(compiled(torch.full((2, 4), 1.0 + step)) + features.outputs[-1].sum())
