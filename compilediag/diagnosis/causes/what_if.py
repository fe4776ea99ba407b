"""Compute what other choices would have cost, from the recorded calls alone: nothing runs.

Only calls that recompiled are recorded, not cache hits. So a choice is compared over the values that recompiled: how
many compiles they would have needed, and what padding would have wasted.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from ...decode.guards.path import format_expression
from ...events import Compile, Rows
from ...formatting import format_amount, format_share
from ..finding import Finding
from .cause import ZERO_ONE, Cause, find_causes, get_value_type

#: Longer numbers are not sizes of anything.
MAX_DIGITS = 19
#: Multiples that sizes are padded to, beside powers of two and the caller's own buckets.
STEPS = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Choice:
    """One way to treat the values, with the compiles that it would have needed for them.

    Where sizes are padded, `buckets` are the sizes that are compiled, and `waste` is what padding adds, as a share of
    the true size (0.25: a quarter more).
    """

    name: str
    compiles: int
    waste: float | None = None
    buckets: tuple[int, ...] = ()

    def __str__(self) -> str:
        waste = f", {format_share(self.waste)} more to compute" if self.waste is not None else ""
        return f"{self.name}: {format_amount(self.compiles, 'compile')}{waste}"


@dataclass(frozen=True)
class WhatIf:
    """The choices for one finding: the values that recompiled, in their order, and what each choice would have needed.

    `recorded` is how many compiles these values took. `note` says what the numbers do not cover.
    """

    title: str
    values: tuple[str, ...]
    recorded: int
    choices: tuple[Choice, ...]
    note: str | None = None

    def __str__(self) -> str:
        lines = [self.title, *(f"  {choice}" for choice in self.choices), *([f"  ({self.note})"] if self.note else [])]
        return "\n".join(lines)

    __repr__ = __str__

    def choice(self, name: str) -> Choice:
        """The choice of that name.

        Args:
            name: "static", "dynamic", ...

        Raises:
            KeyError: there is none.
        """
        return {choice.name: choice for choice in self.choices}[name]


def what_if(finding: Finding, data: Rows, buckets: Sequence[int] | None = None) -> WhatIf | None:
    """Compute what other choices would have needed over the recorded calls; None where there is no other choice.

    The choices for a size or number that varies: static, dynamic, and padded to `buckets` (sizes, of which the last
    has to fit the largest value) or to steps. For a limit: the compiles that a higher limit would have needed.
    ValueError if the largest value does not fit the buckets.
    """
    if finding.rule == "recompile_limit":
        return _compare_limits(finding, data)
    same = [cause for cause in find_causes(data) if (cause.source, cause.kind) == (finding.source, finding.kind)]
    cause = next((cause for cause in same if set(finding.evidence) & set(cause.evidence)), None)
    if cause is None or not _is_integer(cause):
        return None
    sizes = [int(value) for value in cause.values]
    choices = [Choice("static", len(set(sizes))), Choice("dynamic", _count_dynamic(sizes))]
    choices += _pad_sizes(sizes, buckets) if cause.path.is_size and min(sizes) >= 0 else []
    recorded = cause.max_per_function + 1
    title = f"{format_expression(cause.source)}: {len(set(sizes))} values took {recorded} compiles"
    note = "over the calls that recompiled; calls that found an entry are not recorded"
    return WhatIf(title, cause.values, recorded, tuple(choices), note)


def _is_integer(cause: Cause) -> bool:
    are_sizes = all(get_value_type(value) == "int" and len(value) < MAX_DIGITS for value in cause.values)
    return bool(cause.values) and are_sizes


def _count_dynamic(sizes: list[int]) -> int:
    """One compile for all sizes, and one for each of 0 and 1, which torch always compiles on their own."""
    special = {str(size) for size in sizes} & ZERO_ONE
    return len(special) + any(str(size) not in ZERO_ONE for size in sizes)


def _pad_sizes(sizes: list[int], buckets: Sequence[int] | None) -> list[Choice]:
    largest = max(sizes)
    if buckets is not None:
        if not buckets or max(buckets) < largest:
            raise ValueError(f"buckets {[*buckets]} do not fit the largest size, which is {largest}; add a larger one")
        return [_pad("padded to the buckets given", sizes, sorted(set(buckets)))]
    powers = [2**n for n in range(largest.bit_length() + 1)]
    steps = [step for step in STEPS if step <= largest]
    multiples = [_pad(f"padded to multiples of {step}", sizes, range(0, largest + step, step)) for step in steps]
    return [_pad("padded to powers of two", sizes, powers), *multiples, _pad(f"padded to {largest}", sizes, [largest])]


def _pad(name: str, sizes: list[int], buckets: Sequence[int]) -> Choice:
    padded = [buckets[bisect.bisect_left(buckets, size)] for size in sizes]
    waste = sum(padded) / sum(sizes) - 1 if sum(sizes) else None
    return Choice(name, len(set(padded)), waste, tuple(sorted(set(padded))))


def _compare_limits(finding: Finding, data: Rows) -> WhatIf:
    """The compiles that a limit allowed, and what its causes would have needed."""
    hits = [row for row in data.rows(Compile) if row.event_id in finding.evidence]
    regions = {row.region for row in hits} or {None}
    causes = [c for c in find_causes(data) if set(c.places) & set(finding.places) and c.region in regions]
    # The recompile that reached the limit is recorded, but nothing was compiled for it.
    needed = 1 + sum(cause.count for cause in causes)
    choices = [Choice("a higher limit", needed)]
    for cause in filter(_is_integer, causes):
        dynamic = _count_dynamic([int(value) for value in cause.values])
        choices.append(Choice(f"{format_expression(cause.source)} dynamic", needed - 1 - cause.count + dynamic))
    recorded = max(needed - finding.count, 0)
    note = (
        "for the calls up to the one that reached the limit; later calls ran eagerly, and their needs are not recorded"
    )
    return WhatIf(f"{finding.kind} was hit after {recorded} compiles", (), recorded, tuple(choices), note)
