"""What other choices would have cost, told from the recorded calls alone: nothing is run.

Recorded are the calls that recompiled; calls that found an entry are not. So a choice is compared over the values that
recompiled: what one would have compiled for these, and what padding them would have wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..finding import Finding
from ..wording import spoken
from . import paths
from .grouping import ZERO_ONE, Cause, find_causes
from .values import type_of

#: Steps that sizes are rounded up to, beside powers of two and any that the caller names.
STEPS = (8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Choice:
    """One way to treat the values, with the compiles that it would have needed for them.

    `buckets` are the sizes that are compiled for, where padded; `waste` is what padding adds to the computed size,
    as a share of the true size (0.25: a quarter more), None where nothing is padded.
    """

    name: str
    compiles: int
    waste: float | None = None
    buckets: tuple[int, ...] = ()

    def __str__(self) -> str:
        padded = f", {self.waste:.0%} of the true size computed in vain" if self.waste is not None else ""
        return f"{self.name}: {self.compiles} compile{'' if self.compiles == 1 else 's'}{padded}"


@dataclass(frozen=True)
class WhatIf:
    """For one finding: the values that recompiled in their order, and what each choice would have needed for them.

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
        """KeyError if there is none of that name."""
        found = {choice.name: choice for choice in self.choices}
        return found[name]


def what_if(finding: Finding, tables: Any, buckets: Sequence[int] | None = None) -> WhatIf | None:
    """What other choices would have needed over the recorded calls; None where the finding leaves no choice.

    For a size or number that varies: static, dynamic, padded to `buckets` (sizes, the last of which has to hold
    the largest value) or to steps. For a limit: the compiles that it would have taken to go on. ValueError if the
    buckets do not hold the largest value.
    """
    if finding.rule == "recompile_limit":
        return _of_limit(finding, tables)
    rows = [cause for cause in find_causes(tables) if (cause.source, cause.kind) == (finding.source, finding.kind)]
    cause = next((cause for cause in rows if set(finding.evidence) & set(cause.evidence)), None)
    if cause is None or not cause.values or any(type_of(value) != "int" for value in cause.values):
        return None
    return _of_values(cause, buckets)


def _of_values(cause: Cause, buckets: Sequence[int] | None) -> WhatIf:
    sizes = [int(value) for value in cause.values]
    is_size = paths.split_property(cause.source)[1] == "size"
    choices = [Choice("static", len(set(sizes))), Choice("dynamic", _dynamic(sizes))]
    choices += _padded(sizes, buckets) if is_size and min(sizes) >= 0 else []
    recorded = cause.most + 1
    title = f"{spoken(cause.source)}: {len(set(sizes))} values took {recorded} compiles"
    note = "over the calls that recompiled; those that found an entry are not recorded"
    return WhatIf(title, cause.values, recorded, tuple(choices), note)


def _dynamic(sizes: list[int]) -> int:
    """One for all, and one for each of 0 and 1, which torch always compiles on their own."""
    special = {str(size) for size in sizes} & ZERO_ONE
    return len(special) + any(str(size) not in ZERO_ONE for size in sizes)


def _padded(sizes: list[int], buckets: Sequence[int] | None) -> list[Choice]:
    largest = max(sizes)
    if buckets is not None:
        if not buckets or max(buckets) < largest:
            raise ValueError(f"the largest bucket has to hold the largest size, which is {largest}")
        return [_choice("padded to the buckets given", sizes, sorted(set(buckets)))]
    powers = [2**n for n in range(largest.bit_length() + 1)]
    found = [_choice("padded to powers of two", sizes, powers)]
    for step in STEPS:
        if step <= largest:
            found.append(_choice(f"padded to multiples of {step}", sizes, range(0, largest + step, step)))
    return [*found, _choice(f"padded to {largest}", sizes, [largest])]


def _choice(name: str, sizes: list[int], buckets: Sequence[int]) -> Choice:
    padded = [next(bucket for bucket in buckets if bucket >= size) for size in sizes]
    waste = sum(padded) / sum(sizes) - 1 if sum(sizes) else None
    return Choice(name, len(set(padded)), waste, tuple(sorted(set(padded))))


def _of_limit(finding: Finding, tables: Any) -> WhatIf:
    """The compiles that a limit let through, and what its causes would have taken."""
    causes = [cause for cause in find_causes(tables) if set(cause.places) & set(finding.places)]
    asked = 1 + sum(cause.count for cause in causes)  # The recompile that hit the limit is recorded, not compiled.
    choices = [Choice("a higher limit", asked)]
    for cause in causes:
        if cause.values and all(type_of(value) == "int" for value in cause.values):
            dynamic = _dynamic([int(value) for value in cause.values])
            choices.append(Choice(f"{spoken(cause.source)} dynamic", asked - 1 - cause.count + dynamic))
    note = "for the calls up to the one that hit it; later ones ran eagerly, and what they would need is not recorded"
    title = f"{finding.kind} was hit after {max(asked - finding.count, 0)} compiles"
    return WhatIf(title, (), max(asked - finding.count, 0), tuple(choices), note)
