import torch

torch.manual_seed(0)
G = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 6)))
D = torch.compile(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
results = []
for _ in range(3):
    z, real = torch.ones(5, 4), torch.zeros(5, 6)
    loss = D(real).mean() - D(G(z).detach()).mean()
    results.append(loss.detach())
    score = D(G(z)).mean()
    results.append(score.detach())
