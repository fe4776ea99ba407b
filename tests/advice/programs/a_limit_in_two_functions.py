import torch


class Sample:
    def __init__(self, rule):
        self.rule = rule


@torch.compile
def count(rule, x):
    return rule(x).sum()


@torch.compile
def keep(sample, x):
    return torch.where(sample.rule(x), x, 0.0)


def make_rule(limit):
    def rule(x):
        return x < limit

    return rule


results = []
for limit in (2, 3, 5):
    rule = make_rule(limit)
    results += [count(rule, torch.arange(8.0)), keep(Sample(rule), torch.arange(8.0))]
