"""Fine-tunes a small GPT-2: batches of varying length, and a short last batch."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

LENGTHS = [24, 32, 40, 48, 40]
TEXTS_PER_BATCH = [4, 4, 4, 4, 3]

model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=2))
step = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def make_batches():
    for rows, length in zip(TEXTS_PER_BATCH, LENGTHS, strict=True):
        yield torch.randint(0, 64, (rows, length))


results = []
for ids in make_batches():
    loss = step(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    results.append(loss)
