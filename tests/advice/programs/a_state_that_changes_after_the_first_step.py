import torch


@torch.compile
def step(position, contacts):
    velocity = position.flip(0) * 0.5
    hits = contacts + (velocity > 1).sum()
    return position + velocity, hits


position = torch.ones(2, 6)[:, ::2]
contacts = torch.zeros((), dtype=torch.int32)
results = []
for t in range(4):
    position, contacts = step(position, contacts)
    results += [position, contacts.long()]
