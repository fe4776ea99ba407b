"""Trains a small ResNet of torchvision: channels-last images from a loader whose last batch is short."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models.resnet import BasicBlock, ResNet

model = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5)
train_step = torch.compile(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(14, 3, 32, 32), torch.randint(0, 5, (14,)))
loader = DataLoader(data, batch_size=4)

results = []
for epoch in range(2):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(train_step(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        results.append(loss)
