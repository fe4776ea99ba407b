"""Tag the frames of synthetic utterances with a light gated recurrent network that is written in Python.

After https://github.com/pytorch/pytorch/issues/97155 (a custom recurrent network takes very long to compile) and
https://github.com/pytorch/pytorch/issues/154652 (compile time of a loop that is unrolled).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class LiGRUCell(nn.Module):
    """One step of a light gated recurrent unit: an update gate, and ReLU with normalization for the candidate."""

    def __init__(self, features, width):
        super().__init__()
        self.input = nn.Linear(features, 2 * width, bias=False)
        self.state = nn.Linear(width, 2 * width, bias=False)
        self.norm = nn.LayerNorm(2 * width)

    def forward(self, frame, hidden):
        gates = self.norm(self.input(frame)) + self.state(hidden)
        candidate, update = gates.chunk(2, dim=-1)
        update = torch.sigmoid(update)
        return update * hidden + (1 - update) * F.relu(candidate)


class Tagger(nn.Module):
    """A recurrent network over the frames of an utterance, and a tag for each frame."""

    def __init__(self, features, width, tags):
        super().__init__()
        self.width = width
        self.cell = LiGRUCell(features, width)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(width, tags)

    def forward(self, frames):
        hidden = frames.new_zeros(frames.shape[0], self.width)
        states = []
        for t in range(frames.shape[1]):
            hidden = self.cell(frames[:, t], hidden)
            states.append(hidden)
        return self.head(self.dropout(torch.stack(states, dim=1)))


class Utterances:
    """Frames that repeat the tags with a delay and noise; all utterances are padded to one length."""

    def __init__(self, count, length, features, tags, seed):
        generator = torch.Generator().manual_seed(seed)
        codes = torch.randn(tags, features, generator=torch.Generator().manual_seed(0))
        self.tags = torch.randint(tags, (count, length), generator=generator)
        delayed = torch.roll(self.tags, 1, dims=1)
        self.frames = codes[delayed] + 0.3 * torch.randn(count, length, features, generator=generator)

    def batches(self, size, epoch):
        order = torch.randperm(len(self.tags), generator=torch.Generator().manual_seed(epoch))
        for chosen in order.split(size):
            yield self.frames[chosen], self.tags[chosen]


def evaluate(tagger, data, batch_size):
    tagger.eval()
    hits = total = 0
    with torch.no_grad():
        for frames, tags in data.batches(batch_size, 0):
            found = tagger(frames).argmax(-1)
            hits += (found == tags).sum().item()
            total += tags.numel()
    tagger.train()
    return hits / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    train = Utterances(24, args.length, 6, 5, seed=1)
    test = Utterances(8, args.length, 6, 5, seed=2)
    model = Tagger(6, args.width, 5)
    tagger = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        losses = []
        for frames, tags in train.batches(args.batch_size, epoch):
            loss = F.cross_entropy(tagger(frames).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        accuracy = evaluate(tagger, test, args.batch_size)
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
