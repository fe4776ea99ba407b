"""An epsilon-greedy agent on a bandit whose arms drift."""

import torch

torch.manual_seed(10)
ARMS, AGENTS = 6, 32


def make_policy(values, warmup, final):
    """A policy that explores less and less; `learn` updates its estimates."""
    calls = 0

    @torch.compile(backend="aot_eager")
    def act(noise, uniform):
        nonlocal calls
        calls += 1
        epsilon = final + (1 - final) * 0.5 ** (calls / warmup)
        greedy = (values + 1e-3 * noise).argmax(-1)
        explored = noise.argmax(-1)
        return torch.where(uniform < epsilon, explored, greedy)

    @torch.compile(backend="aot_eager")
    def learn(action, reward):
        chosen = torch.nn.functional.one_hot(action, ARMS)
        values.add_(0.2 * chosen * (reward[:, None] - values))

    return act, learn


values = torch.zeros(AGENTS, ARMS)
act, learn = make_policy(values, warmup=8, final=0.05)
means = torch.linspace(-1, 1, ARMS)[torch.randperm(ARMS)]
generator = torch.Generator().manual_seed(3)
total = 0.0
for step in range(40):
    noise = torch.rand(AGENTS, ARMS, generator=generator)
    uniform = torch.rand(AGENTS, generator=generator)
    action = act(noise, uniform)
    reward = means[action] + 0.3 * torch.randn(AGENTS, generator=generator)
    learn(action, reward)
    means = means + 0.05 * torch.randn(ARMS, generator=generator)
    total += reward.mean().item()
print(f"result: {total:.4f} {values.mean().item():.5f}")
