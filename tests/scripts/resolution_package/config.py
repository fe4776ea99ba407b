"""Settings of the training, from the command line."""

import argparse
from dataclasses import dataclass, field


@dataclass
class Config:
    epochs: int = 2
    batch_size: int = 8
    resolutions: list[int] = field(default_factory=lambda: [24, 32, 40])
    width: int = 12
    classes: int = 4
    lr: float = 0.05
    momentum: float = 0.9
    precision: str = "bf16"
    backend: str = "aot_eager"

    @classmethod
    def from_arguments(cls):
        parser = argparse.ArgumentParser(description="Train a small convolutional network at several resolutions.")
        for name, value in vars(cls()).items():
            if isinstance(value, list):
                parser.add_argument(f"--{name}", type=int, nargs="+", default=value)
            else:
                parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
        return cls(**vars(parser.parse_args()))
