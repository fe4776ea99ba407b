"""Rank the pages of a search result and blend the rank of the page into the scores."""

import settings
import torch

torch.manual_seed(5)
ITEMS, SIZE, PER_PAGE = 400, 32, 10

items = torch.nn.functional.normalize(torch.randn(ITEMS, SIZE), dim=-1)
popularity = torch.rand(ITEMS)


@torch.compile(backend=settings.BACKEND)
def rank(query, page):
    """The PER_PAGE items of a page, with scores in which later pages count less."""
    scores = items @ query + 0.1 * popularity
    order = scores.argsort(descending=True)
    start = page * PER_PAGE
    chosen = order[start : start + PER_PAGE]
    return chosen, scores[chosen] / (page + 1)


def search(text, pages):
    generator = torch.Generator().manual_seed(len(text))
    query = torch.randn(SIZE, generator=generator)
    return [rank(query, page) for page in pages]


checksum, seen = 0.0, set()
for text, pages in [("lamp", range(2, 6)), ("garden chair", range(3, 9)), ("tea", [12, 15, 20]), ("book shelf", [30])]:
    for chosen, scores in search(text, pages):
        checksum += scores.sum().item()
        seen.update(chosen.tolist())
print(f"result: {checksum:.4f} {len(seen)}")
