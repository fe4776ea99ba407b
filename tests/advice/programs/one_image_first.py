import torch


@torch.compile
def classify(images):
    return images.mean(1)


results = []
for count in (1, 8, 16, 32):
    images = torch.ones(count, 4)
    results.append(classify(images))
