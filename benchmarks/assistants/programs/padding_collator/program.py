"""Mean of the embeddings of each sequence of a batch of sequences."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(24)
embed = nn.Embedding(500, 16)


@torch.compile(backend="aot_eager")
def encode(sequences):
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    padded = pad_sequence(sequences, batch_first=True)
    inside = torch.arange(padded.shape[1]) < lengths[:, None]
    vectors = embed(padded) * inside[..., None]
    return vectors.sum(1) / lengths[:, None]


total = 0.0
with torch.no_grad():
    for count in (4, 7, 3, 6, 5, 8):
        batch = [torch.randint(0, 500, (5 + 3 * i + count,)) for i in range(count)]
        total += encode(batch).square().sum().item()
print(f"result: {total:.4f}")
