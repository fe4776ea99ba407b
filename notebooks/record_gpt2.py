"""Record the training of a small GPT-2 of transformers on a GPU: `python notebooks/record_gpt2.py OUT.cdiag`.

Its weights are random. Two things change: the length of the sequences, and the size of the last batch.
The session is in the documentation's gallery (`make gallery`).
"""

from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import compilediag as cd

CONFIG = GPT2Config(n_layer=4, n_head=4, n_embd=256, n_positions=256, vocab_size=1000)
#: Size and length of each batch.
BATCHES = ((8, 64), (8, 64), (8, 96), (8, 128), (3, 128))


def train(model, step, optimizer):
    for size, length in BATCHES:
        ids = torch.randint(0, CONFIG.vocab_size, (size, length), device="cuda")
        optimizer.zero_grad(set_to_none=True)
        step(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()


def record(path):
    """Record the training in the session file `path`."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(CONFIG).cuda()
    with cd.watch(path, detail="lean") as session:
        train(model, torch.compile(model), torch.optim.AdamW(model.parameters()))
    print(session.summary())
    print(f"{path}: {Path(path).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    from recording import main

    main(__file__, __doc__)
