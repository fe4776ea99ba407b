import torch


def scale(x):
    return x * 2 + 1


scale_images = torch.compile(scale, isolate_recompiles=True, dynamic=False)
scale_texts = torch.compile(scale, isolate_recompiles=True, dynamic=False)
results = []
for height in (4, 5, 6):
    image = torch.ones(height, 3)
    results.append(scale_images(image))
for length in (20, 21):
    text = torch.ones(length)
    results.append(scale_texts(text))
