import torch


def make_config():
    class Config:
        scale = 2

    return Config()


@torch.compile
def scale(x, config):
    return x * config.scale


x = torch.ones(4)
results = []
for _ in range(3):
    config = make_config()
    results.append(scale(x, config))
