import torch


class Attention(torch.nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, x):
        scores = x @ x.mT
        if self.window is not None:
            scores = scores.tril(self.window)
        return torch.softmax(scores, -1) @ x


layers = [torch.compile(Attention(window)) for window in (None, 2, None, 2)]
x = torch.arange(24.0).reshape(1, 6, 4) / 24
for layer in layers:
    x = layer(x)
results = x
