"""Figures with their bounds. Bounds on speed are checked here and not in tests: tests must pass on any machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured number. `bound` is its maximum, or its minimum if `is_rate` is true."""

    name: str
    value: float
    bound: float
    unit: str
    is_rate: bool = False

    @property
    def is_met(self) -> bool:
        return self.value >= self.bound if self.is_rate else self.value <= self.bound

    def __str__(self) -> str:
        relation = ">=" if self.is_rate else "<="
        verdict = "ok" if self.is_met else "MISSED"
        return f"{self.name:<64} {self.value:>10,.4g} {self.unit:<4} {relation} {self.bound:>8,.4g}  {verdict}"


def print_figures(figures: list[Figure]) -> None:
    for figure in figures:
        print(figure, flush=True)
    missed = sum(not figure.is_met for figure in figures)
    print(f"{len(figures) - missed} of {len(figures)} within their bounds")
