"""One finding a root cause of recompiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import wording
from ..costs import cost_of
from ..finding import Finding, severity_of
from . import identity, modes, paths, shapes, tensors, values
from .advice import Advice
from .grouping import Cause

ADVISERS: dict[str, Callable[[Cause], Advice]] = {
    "tensor_size": shapes.advise_size,
    "symbolic_shape": shapes.advise_symbolic,
    "tensor_stride": shapes.advise_stride,
    "tensor_rank": shapes.advise_rank,
    "tensor_dtype": tensors.advise_dtype,
    "tensor_device": tensors.advise_device,
    "dispatch_keys": tensors.advise_dispatch_keys,
    "requires_grad": tensors.advise_requires_grad,
    "type": tensors.advise_type,
    "alias": tensors.advise_alias,
    "value": values.advise_value,
    "identity": identity.advise_identity,
    "dead_reference": identity.advise_dead_reference,
    "backend": identity.advise_backend,
    "length": identity.advise_length,
    "dict_keys": identity.advise_dict_keys,
    "hasattr": identity.advise_hasattr,
    "global_state": modes.advise_global_state,
    "default_device": modes.advise_default_device,
    "mode_stack": modes.advise_mode_stack,
    "other": modes.advise_other,
}

MAX_DETAILS = 64
_ONE_MORE = "1 more recompile, told of another cause, that stays"
#: Kinds whose fix is told by `also` itself, so that it needn't be said again.
_SIZES = ("tensor_size", "symbolic_shape")


def finding_of(cause: Cause) -> Finding:
    advice = ADVISERS.get(cause.kind, modes.advise_other)(cause)
    what = advice.what or f"{wording.spoken(cause.source) or 'the guarded value'} {wording.was_then(cause.values)}"
    spent = wording.lost(cause.seconds, cause.timed, cause.count)
    return Finding(
        rule=advice.rule,
        severity=severity_of(cause.seconds, cause.count, advice.ceiling),
        title=f"{cause.place} recompiled {wording.times(cause.count)}, {spent}: {what}",
        seconds_lost=cause.seconds,
        evidence=cause.evidence,
        suggestion=advice.suggestion + _beside(cause),
        cost=cost_of(advice.rule),
        fix=advice.fix,
        count=cause.count,
        details=cause.values[:MAX_DETAILS],
        source=cause.source,
        kind=cause.kind,
        places=cause.places,
        seconds_at_stake=cause.seconds_at_stake,
        **_position(cause),
    )


def _position(cause: Cause) -> dict[str, Any]:
    names = ("function", "file", "line", "user_file", "user_line", "user_code")
    return {name: cause.first(name) for name in names}


def _beside(cause: Cause) -> str:
    """What failed at the same calls: mending only this cause would leave those, and the other way round."""
    marked = cause.kind in _SIZES
    others = [_told(*pair) for pair in cause.also if not (marked and pair[0] in _SIZES)]
    told = f" At the same calls these failed too: {wording.listed(others)}." if others else ""
    if cause.shared:
        several = len(cause.shared) > 1
        more = f"{len(cause.shared)} more recompiles, told of other causes, that stay" if several else _ONE_MORE
        told += f" It failed at {more} while it does."
    return told


def _told(kind: str, source: str) -> str:
    return source if paths.split_property(source)[1] else f"{source} ({kind.replace('_', ' ')})"
