"""Training and evaluation."""

import contextlib

import torch
from torch.nn import functional as F


class Engine:
    def __init__(self, model, config):
        self.config = config
        self.model = torch.compile(model, backend=config.backend)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=config.momentum)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.5)

    def precision(self):
        if self.config.precision == "bf16":
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def train_epoch(self, loader):
        self.model.train()
        total = 0.0
        for images, labels in loader:
            with self.precision():
                loss = F.cross_entropy(self.model(images).float(), labels)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.schedule.step()
        return total / len(loader)

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        right = count = 0
        for images, labels in loader:
            with self.precision():
                logits = self.model(images)
            right += (logits.argmax(1) == labels).sum().item()
            count += len(labels)
        return right / count
