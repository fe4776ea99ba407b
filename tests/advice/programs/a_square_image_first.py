import torch


@torch.compile(dynamic=True)
def upsample(image):
    return torch.nn.functional.avg_pool2d(image, 2) * 2


results = []
for height, width in ((16, 16), (24, 12), (32, 32), (12, 40)):
    image = torch.ones(2, 3, height, width)
    results.append(upsample(image))
