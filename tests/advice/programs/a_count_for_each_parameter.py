import torch


class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})
        self._update = torch.compile(self._step_parameter)

    def _step_parameter(self, p, group):
        state = self.state[p]
        state["exp_avg"].lerp_(p.grad, 0.1)
        state["step"] += 1
        p.add_(state["exp_avg"] / (1 - 0.9 ** state["step"]), alpha=-group["lr"])

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if not self.state[p]:
                    self.state[p] = {"step": 0, "exp_avg": torch.zeros_like(p)}
                self._update(p, group)


model = torch.nn.Linear(4, 4, bias=False)
optimizer = Momentum(model.parameters())
results = []
for step in range(5):
    loss = model(torch.ones(2, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    results.append(loss.detach())
