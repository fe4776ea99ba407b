"""Train a small vision transformer with einops, mixed precision, stochastic depth by tensors and averaged weights.

After https://github.com/arogozhnikov/einops/pull/251 (einops in compiled graphs) and
https://github.com/pytorch/pytorch/issues/95425 (layer drop by a Python random number does not compile well).
"""

import argparse

import torch
from einops import rearrange, repeat
from einops.layers.torch import Rearrange, Reduce
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(self.norm(x)), "b n (three h d) -> three b h n d", three=3, h=self.heads)
        return self.out(rearrange(F.scaled_dot_product_attention(q, k, v), "b h n d -> b n (h d)"))


class DropPath(nn.Module):
    """Drops a sample's branch; the decision is a tensor, so that no Python number is guarded."""

    def __init__(self, probability):
        super().__init__()
        self.register_buffer("keep", torch.tensor(1.0 - probability))

    def forward(self, x):
        mask = torch.rand(x.shape[0], 1, 1, device=x.device) < self.keep
        return x * mask / self.keep


class Transformer(nn.Module):
    def __init__(self, size=16, patch=4, width=32, heads=4, depth=2, classes=4):
        super().__init__()
        self.patches = nn.Sequential(
            Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=patch, p2=patch),
            nn.Linear(3 * patch * patch, width),
        )
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, width))
        self.attentions = nn.ModuleList(Attention(width, heads) for _ in range(depth))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(depth)
        )
        self.drops = nn.ModuleList(DropPath(0.1 * i / depth) for i in range(depth))
        self.pool = Reduce("b n d -> b d", "mean")
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images)
        x = torch.cat([repeat(self.token, "1 1 d -> b 1 d", b=x.shape[0]), x], dim=1) + self.positions
        for attention, mlp, drop in zip(self.attentions, self.mlps, self.drops, strict=True):
            x = x + drop(attention(x))
            x = x + drop(mlp(x))
        return self.head(self.pool(x))


def make_batch(batch_size, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 4, (batch_size,), generator=generator)
    grid = torch.linspace(-1, 1, 16)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    images = torch.stack([x, y, -x, -y])[labels][:, None] + torch.randn(batch_size, 3, 16, 16, generator=generator)
    return images, labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--decay", type=float, default=0.8)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    model = Transformer()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(args.decay))
    train_model = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(args.steps):
        images, labels = make_batch(args.batch_size, seed=step)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(train_model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        average.update_parameters(model)
        print(f"step {step:2d} loss {loss.item():.4f} lr {schedule.get_last_lr()[0]:.5f}")
    images, labels = make_batch(64, seed=99)
    with torch.no_grad():
        print(f"averaged {F.cross_entropy(average(images), labels).item():.4f}")


if __name__ == "__main__":
    main()
