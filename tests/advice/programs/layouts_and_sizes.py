import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)

    def forward(self, image):
        return self.conv(image).mean((2, 3))


model = Net()
compiled = torch.compile(model, dynamic=False)
results = []
for side, layout in ((8, torch.contiguous_format), (10, torch.channels_last), (12, torch.contiguous_format)):
    image = torch.ones(2, 3, side, side).contiguous(memory_format=layout)
    results.append(compiled(image))
    results[-1].sum().backward()
results.append(model.conv.weight.grad)
