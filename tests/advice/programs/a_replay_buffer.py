import torch


class Buffer:
    def __init__(self):
        self.storage = torch.zeros(16, 2)
        self.cursor = 0
        self.size = 0

    def extend(self, data):
        end = self.cursor + data.size(0)
        self.storage[self.cursor : end] = data
        self.cursor = end
        self.size = min(self.size + data.size(0), 16)
        return self.storage.sum() * self.size


buffer = Buffer()
extend = torch.compile(buffer.extend)
results = []
for rows in (1, 2, 3, 4):
    data = torch.ones(rows, 2)
    results.append(extend(data))
