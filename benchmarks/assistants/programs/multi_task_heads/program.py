"""A robot policy with one head per task; batches of the tasks come in turn."""

import torch
from torch import nn

torch.manual_seed(16)
TASKS = [
    "close_drawer",
    "open_drawer",
    "pick_block",
    "place_block",
    "press_button",
    "pour_water",
    "push_chair",
    "stack_cups",
    "turn_knob",
    "wipe_table",
    "zip_bag",
]


class Policy(nn.Module):
    def __init__(self, observations=20, actions=7, size=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(observations, size), nn.LayerNorm(size), nn.GELU(), nn.Linear(size, size))
        self.heads = nn.ModuleDict({task: nn.Linear(size, actions) for task in TASKS})
        self.log_std = nn.Parameter(torch.zeros(actions))

    def forward(self, observation, task):
        hidden = torch.tanh(self.trunk(observation))
        mean = self.heads[task](hidden)
        return mean, self.log_std.exp().expand_as(mean)


def log_likelihood(mean, std, action):
    return -(((action - mean) / std).square() + 2 * std.log()).sum(-1).mean()


policy = Policy()
compiled = torch.compile(policy, backend="aot_eager")
total = {}
for epoch in range(2):
    for index, task in enumerate(TASKS):
        generator = torch.Generator().manual_seed(100 * epoch + index)
        observation = torch.randn(16, 20, generator=generator)
        action = torch.tanh(observation[:, :7] * (1 + index / 10))
        mean, std = compiled(observation, task)
        total[task] = total.get(task, 0.0) + log_likelihood(mean, std, action).item()
best = max(total, key=total.get)
print(f"result: {sum(total.values()):.4f} {total[best]:.4f} {best}")
