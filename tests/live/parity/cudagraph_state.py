"""What torch itself holds of CUDA graphs, beside its counters: the trees, and the skip reason of each compile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import compilediag as cd
from compilediag.decode.records.torch_messages import parse_skip

from .assertion import Observed, in_parity


def managers() -> list[Any]:
    """The managers of this thread's trees; none where nothing was captured."""
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is None or not trees.torch._C._is_key_in_tls("tree_manager_containers"):
        return []
    containers = trees.get_obj(trees.local, "tree_manager_containers").values()
    return [container.tree_manager for container in containers if container.tree_manager is not None]


def captured(manager: Any) -> Iterator[Any]:
    """All graphs of a manager."""
    waiting = list(manager.get_roots())
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for children in node.children.values() for child in children]


def in_graph_parity(run: Callable[[], Any], detail: str = "full") -> Observed:
    """Run a scenario and compare the counters, the trees and the skip reasons. What `run` gives is kept alive until
    then, as trees go with their functions.
    """
    seen = in_parity(run, detail)
    frame = seen.session.cudagraphs
    in_trees = frame[frame["backend"].isin(["trees", "cudagraphs"])]
    graphs = [graph for manager in managers() for graph in captured(manager)]
    recorded = in_trees[in_trees["action"].isin(["record", "rerecord"])]
    assert sorted(recorded["graph_id"]) == sorted(graph.id.id for graph in graphs)
    assert sorted(recorded["function_id"]) == sorted(graph.wrapped_function.id.id for graph in graphs)
    warm = [function.id for manager in managers() for function in manager.warmed_up_functions]
    assert sorted(in_trees[in_trees["action"] == "warmup"]["function_id"]) == sorted(warm)
    assert told_reasons(seen.session) >= {
        (metrics.compile_id, parse_skip(metrics.cudagraph_skip_reason)["reason"])
        for metrics in seen.metrics
        if metrics.cudagraph_skip_reason is not None
    }
    return seen


def told_reasons(session: cd.Session) -> set[tuple[str, str]]:
    frame = session.cudagraphs
    skips = frame[frame["action"] == "skip"]
    return set(zip(skips["compile_id"], skips["reason"], strict=True))
