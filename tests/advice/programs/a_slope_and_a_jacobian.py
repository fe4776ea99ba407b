import torch


def place(angles):
    return torch.stack([angles.cos().sum(), angles.sin().sum()])


def energy(angles):
    return angles.square().sum()


compiled_place, compiled_energy = torch.compile(place), torch.compile(energy)
jacobian, slope = torch.func.jacrev(compiled_place), torch.func.grad(compiled_energy)
angles = torch.linspace(0, 1, 4)
results = []
for _ in range(3):
    results.append(compiled_place(angles))
    results.append(compiled_energy(angles))
    results.append(jacobian(angles))
    results.append(slope(angles))
