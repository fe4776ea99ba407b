import torch

torch.manual_seed(0)
layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.1)).eval()
model = torch.compile(layers)
x = torch.ones(2, 4)
results = []
for rate in (0.1, 0.2, 0.3, 0.4):
    layers[1].p = rate
    results.append(model(x).detach())
