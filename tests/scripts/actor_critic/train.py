"""Actor-critic on a toy environment with tensordict: the clip range anneals, episodes have many lengths.

After https://github.com/pytorch/tensordict/issues/1606 (keys that are added recompile),
https://github.com/pytorch/rl/issues/2501 (minibatches of a replay buffer) and
https://github.com/pytorch/pytorch/issues/149406 (Python floats).
"""

import argparse

import torch
from tensordict import TensorDict
from torch import nn
from torch.nn import functional as F


class ActorCritic(nn.Module):
    def __init__(self, observations=4, actions=3, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.policy = nn.Linear(width, actions)
        self.value = nn.Linear(width, 1)

    def forward(self, observation):
        x = self.body(observation)
        return self.policy(x), self.value(x).squeeze(-1)


class Loss:
    def __init__(self, model, entropy_weight=0.01):
        self.model = model
        self.entropy_weight = entropy_weight

    def __call__(self, td, clip):
        logits, value = self.model(td["observation"])
        log_probs = logits.log_softmax(-1)
        ratio = (log_probs.gather(-1, td["action"].unsqueeze(-1)).squeeze(-1) - td["log_prob"]).exp()
        advantage = td["advantage"]
        gain = torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()
        entropy = -(log_probs.exp() * log_probs).sum(-1).mean()
        return F.mse_loss(value, td["return"]) - gain - self.entropy_weight * entropy


@torch.no_grad()
def play(model, episodes, generator):
    """Episodes on a line: push the state towards zero. Their lengths differ, so that of the batch does too."""
    steps = []
    for _ in range(episodes):
        state = torch.randn(4, generator=generator)
        length = int(torch.randint(6, 14, (1,), generator=generator))
        episode = []
        for _ in range(length):
            logits, _ = model(state)
            action = torch.multinomial(logits.softmax(-1), 1, generator=generator)[0]
            td = TensorDict({"observation": state, "action": action, "log_prob": logits.log_softmax(-1)[action]}, [])
            state = 0.9 * state + 0.3 * (action - 1) * torch.tensor([1.0, 0.5, 0.0, -0.5])
            td["reward"] = -state.square().mean()
            episode.append(td)
        rollout = torch.stack(episode)
        returns, value = [], torch.tensor(0.0)
        for reward in rollout["reward"].flip(0):
            value = reward + 0.95 * value
            returns.append(value)
        rollout["return"] = torch.stack(returns[::-1])
        steps.append(rollout)
    return torch.cat(steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=6)
    parser.add_argument("--minibatch", type=int, default=16)
    parser.add_argument("--clip", type=float, default=0.2)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = ActorCritic()
    loss_of = torch.compile(Loss(model), backend=args.backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for iteration in range(args.iterations):
        batch = play(model, args.episodes, generator)
        with torch.no_grad():
            batch["advantage"] = batch["return"] - model(batch["observation"])[1]
        clip = args.clip * (1 - iteration / args.iterations)
        losses = []
        for index in torch.randperm(len(batch), generator=generator).split(args.minibatch):
            loss = loss_of(batch[index], clip)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.item())
        print(f"iteration {iteration} steps {len(batch)} clip {clip:.3f} loss {sum(losses) / len(losses):.4f}")


if __name__ == "__main__":
    main()
