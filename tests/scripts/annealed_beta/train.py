"""A variational autoencoder whose KL weight and temperature anneal, with early stopping and a moving average.

After https://github.com/pytorch/pytorch/issues/115711 (int and float attributes of a module recompile) and
https://github.com/pytorch/pytorch/issues/149406 (Python floats recompile).
"""

import argparse
import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Annealed:
    """A number that goes from `start` to `end` in `epochs` epochs."""

    def __init__(self, start, end, epochs):
        self.start, self.end, self.epochs = start, end, epochs

    def at(self, epoch):
        progress = min(1.0, epoch / self.epochs)
        return self.start + (self.end - self.start) * progress


class Autoencoder(nn.Module):
    def __init__(self, inputs, hidden=32, latent=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, inputs))
        self.beta = 0.0

    def forward(self, x, noise):
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        z = mean + noise * (0.5 * log_variance).exp()
        reconstruction = F.mse_loss(self.decoder(z), x)
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1).mean()
        return reconstruction + self.beta * divergence, reconstruction, divergence


class MovingAverage:
    def __init__(self, model, decay=0.9):
        self.model = copy.deepcopy(model)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ours, theirs in zip(self.model.parameters(), model.parameters(), strict=True):
            ours.lerp_(theirs, 1 - self.decay)


class EarlyStopping:
    def __init__(self, patience=4):
        self.best = float("inf")
        self.patience = patience
        self.bad_epochs = 0

    def __call__(self, loss):
        if loss < self.best - 1e-4:
            self.best, self.bad_epochs = loss, 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--max-beta", type=float, default=0.2)
    parser.add_argument("--warmup-epochs", type=int, default=6)
    args = parser.parse_args()

    torch.manual_seed(0)
    factors = torch.randn(64, 3)
    data = torch.tanh(factors @ torch.randn(3, 12)) + 0.05 * torch.randn(64, 12)
    loader = DataLoader(TensorDataset(data), batch_size=args.batch_size, shuffle=True)

    model = Autoencoder(data.shape[1])
    average = MovingAverage(model)
    model.compile()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    beta = Annealed(0.0, args.max_beta, args.warmup_epochs)
    stop = EarlyStopping()

    for epoch in range(args.epochs):
        model.beta = beta.at(epoch)
        totals = torch.zeros(3)
        for (x,) in loader:
            noise = torch.randn(len(x), 6)
            loss, reconstruction, divergence = model(x, noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
            totals += torch.stack([loss, reconstruction, divergence]).detach()
        loss, reconstruction, divergence = (totals / len(loader)).tolist()
        print(
            f"epoch {epoch} beta {float(model.beta):.3f} loss {loss:.4f} = {reconstruction:.4f} + KL {divergence:.4f}"
        )
        if epoch >= args.warmup_epochs and stop(loss):
            print("stopped early")
            break
    with torch.no_grad():
        mean, _ = average.model.encoder(data).chunk(2, dim=-1)
        print(f"averaged {F.mse_loss(average.model.decoder(mean), data).item():.4f}")


if __name__ == "__main__":
    main()
