import torch


@torch.compile
def decode(x, memory=None, prompt=None):
    if memory is None:
        memory = prompt * 2
    return x + memory.mean(), memory


results = []
for length in (6, 8):
    prompt, memory = torch.ones(2, length), None
    for step in range(3):
        x = torch.full((2, 4), float(step))
        y, memory = decode(x, memory, prompt if step == 0 else None)
        results.append(y)
