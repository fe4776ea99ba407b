import torch


class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.ReLU()])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


stack = Stack()
run = torch.compile(stack)
x = torch.ones(2, 4)
results = []
for _ in range(3):
    results.append(run(x))
    stack.layers.append(torch.nn.ReLU())
