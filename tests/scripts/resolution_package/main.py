"""Train one network at several resolutions: `python main.py --epochs 2 --resolutions 24 32 40`.

After https://github.com/huggingface/diffusers/issues/11360 (recompiles when the resolution changes) and
https://github.com/pytorch/pytorch/issues/115711 (what `forward` keeps on the module is guarded).
"""

import collections

import torch
from config import Config
from data import Gradients, MultiResolutionLoader
from engine import Engine
from model import SmallResNet


def main():
    config = Config.from_arguments()
    torch.manual_seed(0)
    train = Gradients(44, 32, config.classes, seed=1)
    valid = Gradients(16, 32, config.classes, seed=2)
    train_loader = MultiResolutionLoader(train, config.batch_size, config.resolutions, shuffle=True)
    valid_loader = MultiResolutionLoader(valid, config.batch_size, [32], shuffle=False)

    model = SmallResNet(config.width, config.classes)
    engine = Engine(model, config)
    for epoch in range(config.epochs):
        loss = engine.train_epoch(train_loader)
        print(f"epoch {epoch} loss {loss:.4f} accuracy {engine.evaluate(valid_loader):.4f}")
    print("sizes", dict(sorted(collections.Counter(model.sizes_seen).items())))


if __name__ == "__main__":
    main()
