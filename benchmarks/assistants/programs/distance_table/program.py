"""Match the atoms of two conformers of a molecule by their distances."""

import torch

torch.manual_seed(21)


def rotate(points, angle):
    c, s = torch.cos(angle), torch.sin(angle)
    turn = torch.stack([torch.stack([c, -s]), torch.stack([s, c])])
    return torch.cat([points[:, :2] @ turn.T, points[:, 2:]], -1)


@torch.compile(backend="aot_eager")
def match(first, second):
    """For each atom of the first conformer, the most similar one of the second by sorted distances."""
    profiles = []
    for points in (first, second):
        rows = []
        for i in range(points.shape[0]):
            distance = (points - points[i]).square().sum(-1).add(1e-6).sqrt()
            rows.append(distance.sort().values)
        profiles.append(torch.stack(rows))
    scores = []
    for i in range(first.shape[0]):
        scores.append((profiles[1] - profiles[0][i]).abs().mean(-1))
    scores = torch.stack(scores)
    return scores.argmin(-1), scores.amin(-1).mean()


correct, atoms, total = 0, 0, 0.0
for size in (9, 14, 11, 20, 17, 12):
    first = 3 * torch.randn(size, 3)
    order = torch.randperm(size)
    second = rotate(first, torch.rand(()) * 3)[order] + 0.01 * torch.randn(size, 3)
    found, score = match(first, second)
    correct += int((order[found] == torch.arange(size)).sum())
    atoms += size
    total += score.item()
print(f"result: {correct} {atoms} {total:.5f}")
