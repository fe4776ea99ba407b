import torch


def make_score_mod(slope, window):
    def score_mod(score, q, k):
        return torch.where((q - k).abs() < window, score - slope * (q - k).abs(), -1e9)

    return score_mod


@torch.compile
def attend(scores, score_mod):
    q, k = torch.arange(scores.shape[0])[:, None], torch.arange(scores.shape[1])
    return torch.softmax(score_mod(scores, q, k), -1)


scores = torch.zeros(6, 6)
results = []
for slope, window in ((1, 2), (1, 3), (1, 4), (1, 5)):
    results.append(attend(scores, make_score_mod(slope, window)))
