import torch


class Augmentation(torch.nn.Module):
    def forward(self, image):
        return self.apply_transform(image).clamp(0, 1)


class Flip(Augmentation):
    def apply_transform(self, image):
        return image.flip(-1)


class Invert(Augmentation):
    def apply_transform(self, image):
        return 1 - image


class Brighten(Augmentation):
    def apply_transform(self, image):
        return image + 0.2


class Posterize(Augmentation):
    def apply_transform(self, image):
        return (image * 4).round() / 4


class Solarize(Augmentation):
    def apply_transform(self, image):
        return torch.where(image > 0.8, 1 - image, image)


class Gray(Augmentation):
    def apply_transform(self, image):
        return image.mean(0, keepdim=True) + torch.zeros_like(image)


class Gamma(Augmentation):
    def apply_transform(self, image):
        return image**1.5


class Roll(Augmentation):
    def apply_transform(self, image):
        return image.roll(1, -1)


class Rotate(Augmentation):
    def apply_transform(self, image):
        return image.flip(-1).transpose(-1, -2).contiguous()


kinds = (Flip, Invert, Brighten, Posterize, Solarize, Gray, Gamma, Roll, Rotate)
pipeline = [torch.compile(kind()) for kind in kinds]
results = []
for step in range(2):
    image = torch.linspace(0, 1, 48).reshape(3, 4, 4)
    for augment in pipeline:
        image = augment(image)
    results.append(image)
