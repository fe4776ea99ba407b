import torch


def normalize(x):
    return (x - x.mean()) / x.std()


compiled = torch.compile(
    normalize,
    fullgraph=True,
    dynamic=False,  # one kernel for each size
)
results = []
for rows in (4, 6, 7, 9):
    batch = torch.linspace(0, 1, rows * 4).reshape(rows, 4)
    results.append(compiled(batch))
