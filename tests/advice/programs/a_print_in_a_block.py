import torch


class Block(torch.nn.Module):
    def forward(self, x):
        print("block")
        return torch.relu(x)


net = torch.compile(torch.nn.Sequential(Block(), Block()))
results = net(torch.ones(4))
