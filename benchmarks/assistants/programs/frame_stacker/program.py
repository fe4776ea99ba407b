"""Play a small game; the policy sees the last frames of each episode."""

from collections import deque

import torch
from torch import nn

torch.manual_seed(13)
HISTORY, PIXELS = 5, 36


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(PIXELS, 24)
        self.actions = nn.Linear(24, 3)

    def forward(self, frames):
        """Older frames count less; there are fewer at the start of an episode."""
        state, weight = 0.0, 1.0
        for frame in reversed(frames):
            state = state + weight * torch.relu(self.encode(frame) - self.encode.bias)
            weight = weight * 0.6
        return self.actions(state)


class Game:
    """A dot that the player moves along a noisy line."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.position = PIXELS // 2

    def frame(self):
        pixels = 0.1 * torch.rand(PIXELS, generator=self.generator)
        pixels[self.position] = 1.0
        return pixels

    def move(self, action):
        self.position = (self.position + action - 1) % PIXELS
        return 1.0 - abs(self.position - 10) / PIXELS


policy = torch.compile(Policy().eval(), backend="aot_eager")
score, logits_sum = 0.0, 0.0
with torch.no_grad():
    for episode in range(3):
        game = Game(episode)
        frames = deque(maxlen=HISTORY)
        for step in range(9):
            frames.append(game.frame())
            logits = policy(list(frames))
            logits_sum += logits.abs().sum().item()
            score += game.move(int(logits.argmax()))
print(f"result: {score:.4f} {logits_sum:.4f}")
