"""Which records of a log decide what its process compiled, and why: the others need not be parsed to compare ranks.

The decision is made from the bytes of a record. A record of an unknown kind decides.
"""

from __future__ import annotations

import re

from .compilation_metrics import KINDS as METRICS
from .logged_lookups import AFTER_A_LOOKUP
from .record_kinds import CONTEXT, KNOWN

#: The first field of a record, which is its kind, and the name of an artifact.
_KIND = re.compile(rb'\] \{"(\w+)": (?:\{"name": "([^"\n]{0,200})")?')
#: Bytes in which the kind has to be.
_HEAD = 2_000
#: Known kinds that decide: files and functions, outcomes, and guards, which have the values of a new entry.
_DECIDING = frozenset(
    kind.encode() for kind in ("str", "dynamo_start", "create_symbol", "artifact", *AFTER_A_LOOKUP, *METRICS)
)
_KNOWN = frozenset(kind.encode() for kind in (KNOWN | CONTEXT))
_CONTEXT = frozenset(kind.encode() for kind in CONTEXT)
#: Artifacts that decide: reasons, graph breaks, lookups, collectives, and the order in which graphs ran.
_ARTIFACTS = re.compile(
    rb"recompile_reasons|dynamo_graph_break_reason|torch_version|graph_execution|inductor_collective_schedule"
    rb"|inductor_runtime_and_tensor_meta|(?:fx_graph|aotautograd|autograd)_(?:bundled_)?cache_\w+"
)
#: Timed events that decide: the begin of a compile or of its attempt, and lookups.
_TIMED = re.compile(rb'"name": "(?:dynamo|compile_attempt_\d+|(?:fx_graph|aotautograd|autograd)_cache_\w+)"')
_END = b'"ph": "E"'


def is_deciding(piece: bytes) -> bool:
    """Return whether a record, given as its bytes, decides what was compiled."""
    found = _KIND.search(piece, 0, _HEAD)
    if found is None:
        return True
    kind, name = found.groups()
    if kind == b"chromium_event":
        return _TIMED.search(piece) is not None and _END not in piece
    if kind == b"artifact":
        return name is None or _ARTIFACTS.fullmatch(name) is not None
    return kind in _DECIDING or kind in _CONTEXT or kind not in _KNOWN
