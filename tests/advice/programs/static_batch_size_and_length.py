import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(16, 8)

    def forward(self, input_ids, attention_mask):
        hidden = self.embed(input_ids) * attention_mask.unsqueeze(-1)
        return hidden.sum(1) / attention_mask.sum(1, keepdim=True)


model = Encoder()
compiled = torch.compile(model, dynamic=False)
results = []
for rows, length in ((4, 8), (6, 12), (3, 10), (5, 6)):
    features = {
        "input_ids": torch.zeros(rows, length, dtype=torch.long),
        "attention_mask": torch.ones(rows, length),
    }
    y = compiled(**features)
    y.sum().backward()
    results.append(y)
results.append(model.embed.weight.grad)
