import torch


@torch.compile(fullgraph=True)
def scaled_update(param, update, scale, lr):
    param.add_(update * (scale * lr), alpha=-1)


param = torch.ones(8)
update = torch.full((8,), 0.5)
lr = 0.0
for step in range(5):
    lr += 0.01
    scaled_update(param, update, 2.0, lr)
results = [param]
