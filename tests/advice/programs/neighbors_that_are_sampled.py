import torch


class GraphConv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x, edge_index):
        messages = self.lin(x)[edge_index[0]]
        return torch.zeros_like(x).index_add_(0, edge_index[1], messages)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([GraphConv(), GraphConv()])

    def forward(self, x, edge_index, batch_size):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return x[:batch_size]


def sample(nodes, edges):
    source = torch.arange(edges) % nodes
    return torch.ones(nodes, 4), torch.stack([source, source.flip(0)])


model = torch.compile(Net())
results = []
with torch.no_grad():
    for nodes, edges, seeds in ((9, 20, 4), (11, 26, 4), (10, 31, 4), (7, 12, 3)):
        x, edge_index = sample(nodes, edges)
        results.append(model(x, edge_index, seeds))
