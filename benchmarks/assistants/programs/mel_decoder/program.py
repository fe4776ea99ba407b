"""Decode a spectrogram frame by frame; attention looks at all alignments so far."""

import torch
from torch import nn

torch.manual_seed(12)
MELS, SIZE, STEPS = 10, 24, 16


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.prenet = nn.Linear(MELS, SIZE)
        self.cell = nn.Linear(2 * SIZE, SIZE)
        self.location = nn.Linear(1, SIZE, bias=False)
        self.score = nn.Linear(SIZE, 1, bias=False)
        self.out = nn.Linear(SIZE, MELS)

    def forward(self, memory, state, frames, alignments):
        """Append the next frame and its alignment; return the new state."""
        frame = frames[-1] if frames else memory.new_zeros(memory.shape[0], MELS)
        past = torch.stack(alignments).sum(0) if alignments else memory.new_zeros(memory.shape[:2])
        energy = torch.tanh(memory + state[:, None] + self.location(past[..., None]))
        alignment = self.score(energy).squeeze(-1).softmax(-1)
        context = (alignment[..., None] * memory).sum(1)
        state = torch.tanh(self.cell(torch.cat([self.prenet(frame), context], -1)) + 0.5 * state)
        frames.append(self.out(state))
        alignments.append(alignment)
        return state


def decode(decoder, memory):
    frames, alignments = [], []
    state = memory.mean(1)
    for _ in range(STEPS):
        state = decoder(memory, state, frames, alignments)
    return torch.stack(frames, 1), torch.stack(alignments, 1)


decoder = torch.compile(Decoder().eval(), backend="aot_eager")
total = torch.zeros(2)
with torch.no_grad():
    for sentence in range(3):
        memory = torch.randn(2, 20, SIZE)
        frames, alignments = decode(decoder, memory)
        total += torch.stack([frames.norm(), alignments.amax()])
print(f"result: {total[0].item():.5f} {total[1].item():.5f}")
