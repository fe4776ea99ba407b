"""Trains a small vision transformer of timm on images that grow, with an evaluation after each size."""

import timm
import torch

model = timm.create_model(
    "vit_tiny_patch16_224",
    img_size=32,
    patch_size=8,
    embed_dim=32,
    depth=2,
    num_heads=2,
    num_classes=5,
    dynamic_img_size=True,
)
model = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

results = []
for size in (32, 48, 64):
    images, labels = torch.randn(4, 3, size, size), torch.randint(0, 5, (4,))
    model.train()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        results.append(model(images).mean())
