"""Classify small graphs with PyTorch Geometric: each batch has its own number of nodes and edges.

After https://github.com/pytorch/pytorch/issues/94640 (recompiles for each neighborhood that is sampled) and
https://github.com/pytorch/pytorch/issues/121080 (sizes of sampled graphs).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, SAGEConv
from torch_geometric.utils import scatter


class GraphClassifier(nn.Module):
    def __init__(self, inputs, width=24, classes=2):
        super().__init__()
        self.conv1 = SAGEConv(inputs, width)
        self.conv2 = GINConv(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x, edge_index, batch, num_graphs):
        x = self.conv1(x, edge_index).relu()
        x = self.norm(x + self.conv2(x, edge_index).relu())
        mean = scatter(x, batch, dim=0, dim_size=num_graphs, reduce="mean")
        total = scatter(x, batch, dim=0, dim_size=num_graphs, reduce="sum")
        return self.head(torch.cat([mean, total / 10], dim=-1))


def make_graph(label, generator):
    """A ring (label 0) or a star (label 1) with some random edges."""
    count = int(torch.randint(5, 12, (1,), generator=generator))
    nodes = torch.arange(count)
    source, target = (nodes, (nodes + 1) % count) if label == 0 else (torch.zeros_like(nodes), nodes)
    extra = torch.randint(0, count, (2, 3), generator=generator)
    edges = torch.cat([torch.stack([source, target]), torch.stack([target, source]), extra], dim=1)
    return Data(x=torch.randn(count, 6, generator=generator), edge_index=edges, y=torch.tensor([label]))


def make_dataset(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return [make_graph(i % 2, generator) for i in range(count)]


def train_epoch(model, loader, optimizer):
    total = 0.0
    for data in loader:
        logits = model(data.x, data.edge_index, data.batch, data.num_graphs)
        loss = F.cross_entropy(logits, data.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * data.num_graphs
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader):
    right = 0
    for data in loader:
        logits = model(data.x, data.edge_index, data.batch, data.num_graphs)
        right += (logits.argmax(-1) == data.y).sum().item()
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    train_loader = DataLoader(make_dataset(36, seed=1), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(make_dataset(12, seed=2), batch_size=args.batch_size)
    model = torch.compile(GraphClassifier(6), backend=args.backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        loss = train_epoch(model, train_loader, optimizer)
        print(f"epoch {epoch} loss {loss:.4f} accuracy {evaluate(model, test_loader):.4f}")


if __name__ == "__main__":
    main()
