import torch


class Layer(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.lin(x)


layers = [torch.compile(Layer(*widths)) for widths in ((4, 8), (8, 16), (16, 3))]
x = torch.ones(2, 4)
with torch.no_grad():
    for layer in layers:
        x = layer(x)
results = [x]
