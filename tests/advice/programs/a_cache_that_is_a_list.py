import torch


class Cache:
    def __init__(self):
        self.keys = []

    def update(self, key, layer):
        if len(self.keys) <= layer:
            self.keys.append(key)
        else:
            self.keys[layer] = torch.cat([self.keys[layer], key], 1)
        return self.keys[layer]


@torch.compile
def decode(x, cache):
    for layer in range(2):
        keys = cache.update(x * (layer + 1), layer)
        x = torch.softmax(x @ keys.mT, -1) @ keys
    return x


cache, results = Cache(), []
for length in (6, 2, 2, 2, 2):
    x = torch.ones(1, length, 4)
    results.append(decode(x, cache))
