import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(32, 8)
        self.head = torch.nn.Linear(8, 32)

    def forward(self, input_ids, labels):
        logits = self.head(self.embed(input_ids))
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


model = Model()
step = torch.compile(model)
results = []
for rows, length in ((4, 16), (4, 24), (4, 20), (3, 20)):
    ids = torch.arange(rows * length).reshape(rows, length) % 32
    loss = step(input_ids=ids, labels=ids)
    loss.backward()
    results.append(loss)
results.append(model.head.weight.grad)
