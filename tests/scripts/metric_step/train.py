"""Train with metrics of torchmetrics that are updated inside of the compiled step.

After https://github.com/Lightning-AI/torchmetrics/issues/1780 (`self._update_count` recompiles) and
https://github.com/meta-pytorch/torchrec/pull/4338 (`Metric.update` counts in an integer of the module).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy
from torchmetrics.regression import MeanSquaredError


class TwoHeads(nn.Module):
    """Predicts a class and a number."""

    def __init__(self, inputs, width=32, classes=3):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.classifier = nn.Linear(width, classes)
        self.regressor = nn.Linear(width, 1)

    def forward(self, x):
        x = self.trunk(x)
        return self.classifier(x), self.regressor(x).squeeze(-1)


class Trainer:
    def __init__(self, model, lr, regression_weight, backend):
        self.model = model
        self.accuracy = MulticlassAccuracy(num_classes=3, average="micro", validate_args=False)
        self.error = MeanSquaredError()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.regression_weight = regression_weight
        self.loss_step = torch.compile(self.loss_step, backend=backend)

    def loss_step(self, x, labels, values):
        logits, numbers = self.model(x)
        loss = F.cross_entropy(logits, labels) + self.regression_weight * F.mse_loss(numbers, values)
        self.accuracy.update(logits.detach(), labels)
        self.error.update(numbers.detach(), values)
        return loss

    def train_epoch(self, loader):
        self.accuracy.reset()
        self.error.reset()
        total = 0.0
        for x, labels, values in loader:
            loss = self.loss_step(x, labels, values)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader), self.accuracy.compute().item(), self.error.compute().item()


def make_data(count):
    x = torch.randn(count, 7)
    labels = torch.bucketize(x[:, 0] + x[:, 1], torch.tensor([-0.8, 0.8]))
    values = x[:, 2].sin() + 0.1 * torch.randn(count)
    return TensorDataset(x, labels, values)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--regression-weight", type=float, default=0.5)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(make_data(100), batch_size=args.batch_size, shuffle=True)
    trainer = Trainer(TwoHeads(7), args.lr, args.regression_weight, args.backend)
    for epoch in range(args.epochs):
        loss, accuracy, error = trainer.train_epoch(loader)
        print(f"epoch {epoch} loss {loss:.4f} accuracy {accuracy:.4f} error {error:.4f}")


if __name__ == "__main__":
    main()
