import torch


class MetaTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


@torch.compile
def normalize(image):
    return (image - image.mean()) / (image.std() + 1e-5)


volume = torch.arange(8.0)
results = []
for image in (volume, volume.as_subclass(MetaTensor), volume.as_subclass(MetaTensor)):
    results.append(float(normalize(image).sum()))
