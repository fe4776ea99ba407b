"""DataLoader workers by fork and by spawn compile while a watch records, begins and ends."""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, Dataset

import compilediag as cd
from benchmarks.soak.workload import add_length, expect_eager, is_quick, is_time_left, report, run_eager

WORKERS, ITEMS = 2, 8
FORKS, SPAWNS = (2, 1) if is_quick() else (20, 4)


class CompiledItems(Dataset[torch.Tensor]):
    """Each item is computed by compiled code, which every worker compiles for itself."""

    def __len__(self) -> int:
        return ITEMS

    def __getitem__(self, index: int) -> torch.Tensor:
        compiled = torch.compile(add_length, backend="eager")
        return torch.cat([compiled(torch.ones(1), "n" * index), torch.tensor([os.getpid()])])


def load_all(context: str, batches: list[torch.Tensor]) -> Iterator[None]:
    """Load the items, and stop after each batch."""
    loader = DataLoader(CompiledItems(), batch_size=2, num_workers=WORKERS, multiprocessing_context=context)
    for batch in loader:
        batches.append(batch)
        yield


def find_problems(context: str, early: bool) -> list[str]:
    """Watch one epoch; `early`: the watch begins after the workers, and ends before them."""
    torch._dynamo.reset()
    batches: list[torch.Tensor] = []
    loading = load_all(context, batches)
    if early:
        next(loading)
    with cd.watch() as session:
        if not early:
            next(loading)
        results = run_eager()
        if not early:
            list(loading)
    list(loading)
    items = torch.cat(batches)
    problems = [] if results == expect_eager() else [f"results {results}"]
    if items[:, 0].tolist() != [1.0 + n for n in range(ITEMS)]:
        problems.append(f"items {items.tolist()}")
    found = session.compiles.groupby("pid").size().to_dict()
    if found.pop(os.getpid(), 0) != len(results):
        problems.append("a compile of the main process has no row")
    # Each forked worker compiles once for an empty text, and then for each length until a size is dynamic.
    recorded = context == "fork" and not early
    if recorded and set(found) != {int(pid) for pid in items[:, 1]}:
        problems.append(f"workers {set(items[:, 1].tolist())}, rows of {set(found)}")
    if not recorded and found:
        problems.append(f"rows of {found}, which were not watched")
    return [f"{context}, {'watched for a part' if early else 'watched'}: {what}" for what in problems]


def main() -> None:
    for context, epochs in (("fork", FORKS), ("spawn", SPAWNS)):
        problems, done = [], 0
        for done in range(1, epochs + 1):
            try:
                problems += find_problems(context, early=done % 2 == 0)
            except Exception as error:
                problems.append(f"{type(error).__name__}: {error}")
            if not is_time_left():
                break
        report(f"DataLoader workers by {context}: wrong result, row missing", done, problems, f"{WORKERS} workers each")


if __name__ == "__main__":
    main()
