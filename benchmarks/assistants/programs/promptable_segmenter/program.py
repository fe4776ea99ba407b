"""Segment an image from prompts: a point, a box, an earlier mask, or any of them together."""

import torch
from torch import nn

torch.manual_seed(18)
SIDE, SIZE = 12, 24


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Linear(2, SIZE, bias=False)
        self.box = nn.Linear(4, SIZE, bias=False)
        self.image = nn.Conv2d(3, SIZE, 3, padding=1)
        self.mask = nn.Conv2d(1, SIZE, 3, padding=1, bias=False)

    def forward(self, image, point=None, box=None, mask=None):
        features = torch.relu(self.image(image))
        query = features.mean((2, 3))
        if point is not None:
            query = query + self.point(point)
        if box is not None:
            query = query + self.box(box)
        if mask is not None:
            features = features + self.mask(mask)
        return torch.einsum("bc,bchw->bhw", torch.tanh(query), features)


class Session:
    """What a user does with one image."""

    def __init__(self, model, image):
        self.model = model
        self.image = image
        self.logits = None

    def click(self, x, y, refine=False, box=None):
        return self.run(point=torch.tensor([[x, y]]), box=box, refine=refine)

    def drag(self, *corners, refine=False):
        return self.run(box=torch.tensor([corners]), refine=refine)

    def run(self, refine, **prompts):
        prompts = {name: value for name, value in prompts.items() if value is not None}
        if refine:
            prompts["mask"] = self.logits[:, None].sigmoid()
        self.logits = self.model(self.image, **prompts)
        return (self.logits > 0).float().mean().item()


model = torch.compile(Segmenter().eval(), backend="aot_eager")
areas = []
with torch.no_grad():
    for number in range(3):
        session = Session(model, torch.rand(1, 3, SIDE, SIDE))
        areas.append(session.click(0.3, 0.4))
        areas.append(session.drag(0.1, 0.2, 0.6, 0.8))
        areas.append(session.click(0.5, 0.6, refine=True))
        areas.append(session.drag(0.2, 0.2, 0.7, 0.9, refine=True))
        areas.append(session.click(0.8, 0.1, box=torch.tensor([[0.5, 0.0, 1.0, 0.4]])))
        areas.append(session.click(0.7, 0.2, box=torch.tensor([[0.4, 0.0, 0.9, 0.4]]), refine=True))
print(f"result: {sum(areas):.5f} {session.logits.norm().item():.4f}")
