import torch


@torch.compile
def embed(batch):
    y = batch["ids"] * 2
    if "types" in batch:
        y = y + batch["types"]
    return y


results = []
for length, has_types in ((6, False), (8, True), (10, True), (12, False)):
    batch = {"ids": torch.ones(2, length)}
    if has_types:
        batch["types"] = torch.ones(2, length)
    results.append(embed(batch))
