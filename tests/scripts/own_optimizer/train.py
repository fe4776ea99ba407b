"""Fit a regression with an Adam of our own, whose update is compiled, a warm-up and a plateau schedule.

After https://github.com/pytorch/pytorch/issues/107076 (the learning rate is a float, so each change recompiles),
https://github.com/pytorch/pytorch/issues/171320 (arithmetic on Python floats recompiles without end) and
https://github.com/Koratahiu/Advanced_Optimizers/pull/6 (the step counter of an optimizer of one's own).
"""

import argparse

import torch
from torch import nn


@torch.compile(fullgraph=True)
def fused_update(params, grads, exp_avgs, exp_avg_sqs, lr, beta1, beta2, correction1, correction2, eps, decay):
    torch._foreach_lerp_(exp_avgs, grads, 1 - beta1)
    torch._foreach_mul_(exp_avg_sqs, beta2)
    torch._foreach_addcmul_(exp_avg_sqs, grads, grads, value=1 - beta2)
    for param, exp_avg, exp_avg_sq in zip(params, exp_avgs, exp_avg_sqs, strict=True):
        step_size = lr / correction1
        denominator = (exp_avg_sq.sqrt() / correction2**0.5) + eps
        param.mul_(1 - lr * decay)
        param.sub_(step_size * exp_avg / denominator)


class FusedAdam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.updates = 0

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.updates += 1
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            for p in params:
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
            beta1, beta2 = group["betas"]
            fused_update(
                params,
                [p.grad for p in params],
                [self.state[p]["exp_avg"] for p in params],
                [self.state[p]["exp_avg_sq"] for p in params],
                group["lr"],
                beta1,
                beta2,
                1 - beta1**self.updates,
                1 - beta2**self.updates,
                group["eps"],
                group["weight_decay"],
            )
        return loss


class WarmupThenPlateau:
    """Linear warm-up, then halve the rate when the loss has not improved for `patience` steps."""

    def __init__(self, optimizer, warmup, patience=3):
        self.optimizer = optimizer
        self.warmup = warmup
        self.patience = patience
        self.base = [group["lr"] for group in optimizer.param_groups]
        self.best = float("inf")
        self.bad = self.steps = 0

    def step(self, loss):
        self.steps += 1
        if self.steps <= self.warmup:
            for base, group in zip(self.base, self.optimizer.param_groups, strict=True):
                group["lr"] = base * self.steps / self.warmup
            return
        self.best, self.bad = (loss, 0) if loss < self.best else (self.best, self.bad + 1)
        if self.bad >= self.patience:
            self.bad = 0
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.5


def make_data(count, features):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(count, features, generator=generator)
    y = (x[:, :3].sin().sum(1, keepdim=True) + 0.1 * torch.randn(count, 1, generator=generator)).tanh()
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-2)
    args = parser.parse_args()

    torch.manual_seed(0)
    x, y = make_data(256, 8)
    model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = FusedAdam(model.parameters(), lr=args.lr)
    schedule = WarmupThenPlateau(optimizer, warmup=4)

    for step in range(args.steps):
        index = torch.randint(0, len(x), (args.batch_size,), generator=torch.Generator().manual_seed(step))

        def closure(index=index):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[index]), y[index])
            loss.backward()
            return loss

        loss = optimizer.step(closure).item()
        rate = optimizer.param_groups[0]["lr"]
        schedule.step(loss)
        print(f"step {step:2d} loss {loss:.4f} lr {rate:.5f}")
    with torch.no_grad():
        print(f"final {nn.functional.mse_loss(model(x), y).item():.4f}")


if __name__ == "__main__":
    main()
