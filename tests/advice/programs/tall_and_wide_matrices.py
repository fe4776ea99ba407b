import torch


@torch.compile
def orthogonalize(matrix):
    x = matrix / matrix.norm()
    if matrix.size(0) > matrix.size(1):
        x = x.mT
    for _ in range(2):
        x = 1.5 * x - 0.5 * (x @ x.mT) @ x
    return x.mT if matrix.size(0) > matrix.size(1) else x


results = []
for rows, columns in ((3, 5), (8, 4), (4, 6), (7, 3)):
    results.append(orthogonalize(torch.arange(float(rows * columns)).view(rows, columns)))
