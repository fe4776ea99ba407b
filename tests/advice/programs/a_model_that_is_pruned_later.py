import torch
from torch.nn.utils import prune


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())


model = Classifier()
classify = torch.compile(model)
x = torch.ones(2, 4)
results = [classify(x).sum() * 0]
prune.l1_unstructured(model.body, "weight", amount=0.5)
results.append(classify(x))
