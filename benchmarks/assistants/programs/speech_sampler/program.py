"""Sample speech tokens; each voice has a temperature and a number of candidates of its own."""

import torch
from torch import nn

torch.manual_seed(6)
CODES, SIZE = 128, 48


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(CODES, SIZE)
        self.cell = nn.GRUCell(SIZE, SIZE)
        self.out = nn.Linear(SIZE, CODES)


def sample(logits, temperature, top_k, noise):
    """The code with the largest noisy score among the best `top_k`."""
    best, codes = torch.topk(logits / temperature, top_k)
    return codes.gather(-1, (best + noise[:, :top_k]).argmax(-1, keepdim=True))


def generate_next(decoder, code, state, temperature, top_k, noise):
    state = torch.tanh(decoder.codes(code) @ decoder.cell.weight_hh[:SIZE] + state)
    logits = decoder.out(state)
    return sample(logits, temperature, top_k, noise)[:, 0], state


VOICES = {
    "calm": (0.5, 5),
    "bright": (0.7, 8),
    "excited": (1.1, 20),
    "whisper": (0.4, 12),
    "robot": (0.3, 3),
    "story": (0.9, 40),
    "news": (0.6, 16),
    "child": (1.2, 30),
    "old": (0.8, 10),
    "singer": (1.3, 50),
}

decoder = Decoder().eval()
step = torch.compile(generate_next, backend="aot_eager", dynamic=False)
checksum = 0
with torch.no_grad():
    for number, (temperature, top_k) in enumerate(VOICES.values()):
        generator = torch.Generator().manual_seed(number)
        code, state = torch.tensor([number, number + 1]), torch.zeros(2, SIZE)
        for _ in range(6):
            noise = -torch.rand(2, CODES, generator=generator).log().neg().log()
            code, state = step(decoder, code, state, temperature, top_k, noise)
            checksum += int(code.sum())
print(f"result: {checksum} {state.norm().item():.4f}")
