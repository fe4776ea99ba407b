import torch


@torch.compile(dynamic=False)
def forward(x, is_image):
    return x.mean(-1) * 2 if is_image else x.sum(-1)


results = []
for length, is_image in ((4, True), (6, False), (8, True), (10, False)):
    x = torch.ones(3, length)
    results.append(forward(x, is_image))
