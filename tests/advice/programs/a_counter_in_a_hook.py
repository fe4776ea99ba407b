import torch


def track(module, args):
    module._n_seen += args[0].shape[0]
    module._calls += 1


model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
for module in model:
    if isinstance(module, torch.nn.Linear):
        module._n_seen, module._calls = 0, 0
        module.register_forward_pre_hook(track)
compiled = torch.compile(model)
results = []
with torch.no_grad():
    for step in range(5):
        results.append(compiled(torch.full((2, 4), 1.0 + step)))
results.append((int(model[0]._n_seen), int(model[2]._calls)))
