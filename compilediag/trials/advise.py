"""The smallest set of settings that fixes a workload: fixes are tried alone, then together."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass, field
from typing import Any

from ..diagnosis import Finding, fix_code, merge_fixes
from ..diagnosis.causes.shape_advice import SIZE_KINDS
from ..diagnosis.settings import Settings
from ..formatting import format_line, format_seconds
from .verify import Baseline, Bench, Verification, Workload, WorkloadRun, count_limits, judge_fix

#: Rounds; in each, fixes of what the round before uncovered are tried as well.
MAX_ROUNDS = 3
#: Causes that are tried alone: the most expensive ones.
MAX_TRIED = 12
#: Settings that are tried for one cause.
MAX_VARIANTS = 4
#: A setting for all sizes at once, in case the names of single ones do not suffice.
_ALL_SIZES_DYNAMIC: Settings = {"assume_static_by_default": False}
#: Worse than any count.
_UNSOUND = (sys.maxsize, sys.maxsize)


@dataclass(frozen=True)
class Advised:
    """What `advise` found. `fix` is the smallest set of settings that works, as in `Finding.fix`; None if none does.

    `chosen` are the findings that it fixes, `tried` the outcomes of all sets that were tried, `verification` that of
    the chosen set, `left` the findings that no setting fixes: the code has to be changed. `note` says in one line why
    nothing could be tried.
    """

    fix: dict[str, Any] | None
    chosen: tuple[Finding, ...] = ()
    verification: Verification | None = None
    tried: tuple[Verification, ...] = ()
    left: tuple[Finding, ...] = ()
    note: str | None = None
    baseline: WorkloadRun | None = field(default=None, repr=False)

    @property
    def code(self) -> str | None:
        """The statements that apply it, for a place before the first compiled call."""
        return fix_code(self.fix)

    def __str__(self) -> str:
        lines = [self._verdict()]
        lines += [f"  {statement}" for statement in (self.code or "").split("; ") if statement]
        lines += [f"    fixes: {format_line(f.title, 160)}" for f in self.chosen]
        lines += [f"    costs: {cost}" for cost in dict.fromkeys(f.cost for f in self.chosen if f.cost)]
        lines += [f"  tried: {format_line(str(v), 200)}" for v in self.tried]
        lines += [f"  in the code: {format_line(f.title, 120)} -> {f.suggestion}" for f in self.left]
        return "\n".join(lines)

    __repr__ = __str__

    def _verdict(self) -> str:
        found = self.verification
        if self.note is not None:
            return f"Nothing was tried: {self.note}"
        if found is None or found.recompiles_after is None:
            return "No setting helps this workload." if self.tried else "No setting to try for this workload."
        counts = f"{found.recompiles_before} recompiles -> {found.recompiles_after}"
        before, after = format_seconds(found.seconds_before or 0), format_seconds(found.seconds_after or 0)
        return f"{counts}, {before} compiling -> {after}, with:"


def advise(workload: Workload, detail: str = "full") -> Advised:
    """Try the fixes of what `workload` shows, in order of seconds lost, alone and together; see `verify.Bench`.

    Each try is a run of the workload. For what still recompiles with all fixes, other kinds of settings are tried. What
    a fix uncovers is tried in further rounds. `detail` is that of `watch`.
    CompilediagError if fixes cannot be tried here at all.
    """
    bench = Bench(workload, detail)
    try:
        return _advise(bench)
    finally:
        bench.progress.end()


def _advise(bench: Bench) -> Advised:
    baseline = Baseline(bench.run(), bench.run())
    problem = bench.unrestored or baseline.unsteady
    if problem:
        return Advised(None, note=problem, baseline=baseline.first)
    search = _Search(bench, baseline)
    chosen = search.run()
    if not chosen:
        left = tuple(f for f in baseline.first.findings if f.source is not None)
        return Advised(None, tried=search.list_outcomes(), left=left, baseline=baseline.first)
    found = search.outcome(chosen)
    left = tuple(f for f in found.left if f.source is not None)
    return Advised(found.fix, chosen, found, search.list_outcomes(), left, None, baseline.first)


class _Search:
    """Which of the fixes are needed. Each set is run once."""

    def __init__(self, bench: Bench, baseline: Baseline):
        self.bench, self.baseline = bench, baseline
        self._outcomes: dict[tuple[tuple[str, Any], ...], Verification] = {}

    def list_outcomes(self) -> tuple[Verification, ...]:
        return tuple(self._outcomes.values())

    def outcome(self, findings: tuple[Finding, ...]) -> Verification:
        """The outcome of a set of fixes together."""
        fix = merge_fixes([f.fix for f in findings])
        key = tuple(sorted(fix.items()))
        if key not in self._outcomes:
            self._outcomes[key] = judge_fix(None, fix, self.baseline, self.bench)
        return self._outcomes[key]

    def run(self) -> tuple[Finding, ...]:
        """The smallest set that was found; empty if no fix helps."""
        chosen: tuple[Finding, ...] = ()
        candidates = _find_candidates(self.baseline.first.findings)
        for _ in range(MAX_ROUNDS):
            better = self._round(chosen, candidates)
            if better == chosen:
                break
            chosen = better
            candidates = _find_candidates(self.outcome(chosen).left, chosen)
        return chosen

    def _round(self, chosen: tuple[Finding, ...], candidates: list[Finding]) -> tuple[Finding, ...]:
        """`chosen` with those of the candidates that are needed."""
        picked = (self._pick_sound(chosen, candidate) for candidate in candidates[:MAX_TRIED])
        sound = [finding for finding in picked if finding is not None]
        if not sound:
            return chosen
        everything = self._exchange((*chosen, *sound))
        goal = self._score(everything)
        if goal >= self._score(chosen):
            return chosen
        for single in sound:
            if self._score((*chosen, single)) <= goal:
                return (*chosen, single)
        return self._drop_needless(everything, goal)

    def _pick_sound(self, chosen: tuple[Finding, ...], candidate: Finding) -> Finding | None:
        """The candidate with the first of its settings that does not change results."""
        variants = list_variants(candidate)
        return next((found for found in variants if self.outcome((*chosen, found)).same_results), None)

    def _exchange(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """The set with other settings for what still recompiles, where these help: `unbacked_sources` instead of
        `dynamic_sources` for one value, beside other kinds of settings for the others.
        """
        best = self._score(findings)
        for at, finding in enumerate(findings):
            if best[1] == 0 or finding.source not in {left.source for left in self.outcome(findings).left}:
                continue
            for variant in list_variants(finding)[1:MAX_VARIANTS]:
                other = (*findings[:at], variant, *findings[at + 1 :])
                if self._score(other) < best:
                    findings, best = other, self._score(other)
        return findings

    def _drop_needless(self, findings: tuple[Finding, ...], goal: tuple[int, int]) -> tuple[Finding, ...]:
        for finding in reversed(findings):
            fewer = tuple(f for f in findings if f is not finding)
            if fewer and self._score(fewer) <= goal:
                findings = fewer
        return findings

    def _score(self, findings: tuple[Finding, ...]) -> tuple[int, int]:
        """Limits hit, then recompiles: fewer is better. A set that changes results is worse than no fix."""
        if not findings:
            return (count_limits(self.baseline.first.findings), self.baseline.first.recompiles)
        found = self.outcome(findings)
        if found.recompiles_after is None or not found.same_results:
            return _UNSOUND
        return (count_limits(found.left), found.recompiles_after)


def _find_candidates(findings: tuple[Finding, ...], chosen: tuple[Finding, ...] = ()) -> list[Finding]:
    """Findings that a setting may fix, each setting once: causes first, most seconds first; limits last."""
    tried = [f.fix for f in chosen]
    found: list[Finding] = []
    for finding in sorted((f for f in findings if f.fix), key=lambda f: f.rule == "recompile_limit"):
        if finding.fix not in [*tried, *(f.fix for f in found)]:
            found.append(finding)
    return found


def list_variants(finding: Finding) -> list[Finding]:
    """A finding with each of the settings that may fix it, its own first."""
    settings = [finding.fix, *(change.settings for change in finding.changes if not change.edits)]
    names = ",".join(filter(None, (str((fix or {}).get("dynamic_sources", "")) for fix in settings[:1])))
    if names:
        settings.append({"unbacked_sources": names})
    if finding.kind in SIZE_KINDS:
        settings.append(_ALL_SIZES_DYNAMIC)
    unique = [fix for at, fix in enumerate(settings) if fix and fix not in settings[:at]]
    return [dataclasses.replace(finding, fix=fix) for fix in unique]
