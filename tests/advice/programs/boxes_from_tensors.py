import torch


@torch.compile
def crop_size(box, image):
    width = (box[2] - box[0]).item()
    height = (box[3] - box[1]).item()
    return image * (width + height)


image = torch.ones(4)
results = []
for box in torch.tensor([[1, 2, 5, 9], [2, 2, 9, 8], [0, 1, 7, 3], [3, 3, 5, 9]]):
    results.append(crop_size(box, image))
