"""Programs whose compiles need no C++ compiler, so that a scenario of the caches takes tenths of a second."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch._dynamo import utils
from torch._inductor.custom_graph_pass import CustomGraphPass

import compilediag as cd


def squared(x: torch.Tensor) -> torch.Tensor:
    return x @ x


def inference(**options: Any) -> torch.Tensor:
    """Compile a function of its own kind anew and call it."""
    torch._dynamo.reset()
    return torch.compile(squared, **options)(torch.ones(4, 4))


def training() -> torch.Tensor:
    """The same with its backward."""
    torch._dynamo.reset()
    x = torch.ones(4, 4, requires_grad=True)
    torch.compile(squared)(x).backward(torch.ones(4, 4))
    return x.grad


def lookups(session: cd.Session, cache: str, *columns: str) -> list[Any]:
    """What `columns` say of each row of a cache, in the order of the events; None where they say nothing."""
    frame = session.cache_lookups
    frame = frame[frame["cache"] == cache].astype(object)
    frame = frame.where(frame.notna(), None)
    return [
        values[0] if len(columns) == 1 else tuple(values) for values in frame[list(columns)].itertuples(index=False)
    ]


def the_row(session: cd.Session, cache: str, **equal: Any) -> pd.Series:
    """The only row of a cache whose columns are as given."""
    frame = session.cache_lookups
    wanted = frame["cache"] == cache
    for name, value in equal.items():
        wanted &= frame[name] == value
    (row,) = (row for _, row in frame[wanted].astype(object).iterrows())
    return row.where(row.notna(), None)


def assert_not_loaded(seen: Any, cache: str, with_why: bool) -> None:
    """A damaged entry was a miss that says what torch's log says, if that is on, and the result is right."""
    row = the_row(seen.session, cache, action="look_up")
    assert row["outcome"] == "miss" and row["reason"].startswith("an entry could not be loaded: ")
    assert ("UnpicklingError" in row["reason"]) is with_why and seen.result.eq(4).all()


def files_of(folder: Path, cache: str) -> list[Path]:
    """The entries of a cache on disk."""
    return [path for path in (folder / cache).rglob("*") if path.is_file()]


@contextlib.contextmanager
def events_off() -> Iterator[None]:
    """torch's logger of events does not exist yet, as before its first event."""
    before, utils.CHROMIUM_EVENT_LOG = utils.CHROMIUM_EVENT_LOG, None
    try:
        yield
    finally:
        utils.CHROMIUM_EVENT_LOG = before


@contextlib.contextmanager
def logs_off() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class Unpicklable(CustomGraphPass):
    """A user's pass that leaves a constant in the graph which hashes like any other and can't be pickled."""

    constant = torch.eye(4)
    constant.note = lambda: None

    def __call__(self, graph: torch.fx.Graph) -> None:
        product = graph.find_nodes(op="call_function", target=torch.ops.aten.mm.default)[-1]
        graph.owning_module.register_buffer("constant", self.constant)
        with graph.inserting_before(product):
            constant = graph.get_attr("constant")
        constant.meta["val"] = product.args[0].meta["val"]
        product.args = (constant, product.args[1])

    def uuid(self) -> str:
        return "a constant with a note"
