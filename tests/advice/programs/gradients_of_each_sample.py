import torch


def loss(weight, sample):
    return (weight * sample).sum().square()


compiled = torch.compile(loss)
gradients = torch.func.vmap(torch.func.grad(compiled), (None, 0))
weight = torch.linspace(-1, 1, 4)
batch = torch.linspace(0, 1, 12).reshape(3, 4)
results = []
for _ in range(3):
    results.append(compiled(weight, batch[0]))
    results.append(gradients(weight, batch))
