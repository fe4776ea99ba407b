"""The search: run, change a copy, run again, keep what is better, leave out what is not needed, prove the rest."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from ..diagnosis.causes.cause import Cause, get_value_type
from ..diagnosis.evidence import Evidence, group_by
from ..diagnosis.rule import format_user_line
from ..diagnosis.rules.graph_breaks import describe_remedy, list_breaks
from ..diagnosis.rules.guards_on_numbers import ALL_DYNAMIC
from ..diagnosis.rules.recompiles import advise, place_changes
from ..diagnosis.source_edits import EditError
from ..errors import CompilediagError
from ..formatting import format_amount, format_function, format_line, format_names, format_place, format_seconds
from ..storage.data import SessionData
from ..system.source_files import SourceReader
from ..trials.fresh_process import ProcessRunner, ProgramJob
from ..trials.measured_run import (
    OuterCalls,
    RunSummary,
    compare_outputs,
    explain_end,
    find_other_result,
    measure,
    read_calls,
)
from .code_moves import CompileStep
from .moves import FIRST, DynamicTrue, list_moves, make_bundle
from .program import KINDS, Bundle, Move, Observation, Program, ProgramChange, is_needed

#: Calls after the last compile that a run makes: a share of those before, and at least so many.
_MORE_CALLS, _FEWEST_CALLS = 0.25, 20
#: A changed run is ended after so many times the seconds of the unchanged one, and some more.
_LONGER, _MORE_S = 5.0, 60.0
#: A graph that has no loop unrolled any more is so many times smaller.
_SMALLER = 8
#: Guards are cheaper if a check takes less than this share of what it took.
_CHEAPER = 0.8
#: States that are proven if the best one is refuted, and the runs of that.
_MOST_PROOFS = 3
MOST_PROOF_RUNS = 2 + 2 * _MOST_PROOFS
#: Changes in a row that help only together with the next one, less the last; and how many of each are tried.
_MOST_DETOURS = 2
#: Runs that are kept for leaving out what is not needed.
_KEPT_RUNS = 8


class Score(NamedTuple):
    """How good a run is: less is better, the first number counts first."""

    limits: int
    breaks: int
    unrolled: int
    uncached: int
    recompiles: int
    guards: int
    compiles: int
    failures: int

    @property
    def is_open(self) -> bool:
        """True if there is something to fix."""
        return any(self[:-2])

    @property
    def result(self) -> tuple[int, ...]:
        """Without the guards that failed: fewer only hint that a cause is gone while another one is left."""
        return self[:-1]


@dataclass(frozen=True)
class State:
    """The program with some changes, and the run that showed what it does, with its number. `objection` says why it is
    rejected. `is_unrolled`: a graph has all steps of a loop. `has_guards`: cheaper guards are wanted, and these are as
    expensive as before.
    """

    changes: tuple[ProgramChange, ...]
    run: RunSummary
    calls: OuterCalls | None
    lines: int
    number: int = 0
    objection: str | None = None
    is_unrolled: bool = False
    has_guards: bool = False

    @property
    def score(self) -> Score:
        run = self.run
        counts = (run.recompiles, int(self.has_guards), run.compiles, run.failures)
        return Score(run.limits, run.graph_breaks, int(self.is_unrolled), run.uncached, *counts)

    @property
    def counts(self) -> str:
        """What can be fixed, in words: `3 recompiles and 1 graph break`."""
        run = self.run
        counts = [format_amount(run.recompiles, "recompile")] if run.recompiles else []
        counts += [format_amount(run.graph_breaks, "graph break")] if run.graph_breaks else []
        counts += [f"{format_amount(run.largest, 'call')} in a graph"] if self.is_unrolled else []
        counts += [f"{format_amount(run.uncached, 'graph')} that no cache keeps"] if run.uncached else []
        counts += [f"{format_seconds(run.guards_us / 1e6)} for a check of all guards"] if self.has_guards else []
        if run.limits and not counts:
            return f"{format_amount(run.limits, 'limit')} reached"
        return " and ".join(counts) or "0 recompiles"

    @property
    def rank(self) -> tuple[int, ...]:
        """Sorts states: fewer limits, breaks, recompiles and compiles, then fewer changed lines, then the kind."""
        return (*self.score.result, self.lines, max(map(KINDS.index, self._kinds), default=0))

    @property
    def is_local(self) -> bool:
        """True if no change is a setting, which holds for the whole process."""
        return "settings" not in self._kinds

    @property
    def _kinds(self) -> set[str]:
        return {change.kind for change in self.changes}


@dataclass(frozen=True)
class Attempt:
    """One tried bundle, added to a state or left out of one. `is_kept`: that became the best state. `move` is the name
    of the move's class; "" if something was left out.
    """

    number: int
    title: str
    state: State
    before: State
    is_kept: bool
    move: str = ""


@dataclass(frozen=True)
class Proof:
    """Runs of the unchanged and of the changed program with the program's own backend, the best of each."""

    before: State
    after: State

    @property
    def objection(self) -> str | None:
        return self.after.objection


@dataclass(frozen=True)
class TriedFor:
    """A change that a run tried for what is left, and the recompiles before and with it."""

    title: str
    recompiles_before: int
    recompiles: int
    objection: str | None


@dataclass(frozen=True)
class Left:
    """A cause of recompiles or a graph break that remains.

    `place` is the user's call, `calls` are the numbers of the outer calls at which it recompiled, and `line` is the
    line that made the guard, or that ends the graph, with its code. `is_needed`: no change of the program that keeps
    what it computes removes it, as far as that is known. `tried` are the changes that runs tried for it; then `reason`
    recommends none of those.
    """

    what: str
    place: str
    reason: str
    recompiles: int
    is_needed: bool
    line: str = ""
    calls: tuple[int, ...] = ()
    tried: tuple[TriedFor, ...] = ()


@dataclass
class FixResult:
    """What the search found.

    `changes` are the smallest set that does what the best state does; empty if nothing helps. `before` and `after` are
    the runs of the search, `proof` those with the program's own backend; None if it was left out. `without` has, for
    each change, the state without it. `problem` says why nothing could be tried.
    """

    program: Program | None = None
    before: State | None = None
    after: State | None = None
    changes: tuple[ProgramChange, ...] = ()
    without: dict[ProgramChange, State] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    left: tuple[Left, ...] = ()
    proof: Proof | None = None
    backend: str | None = None
    runs: int = 0
    seconds: float = 0.0
    problem: str | None = None
    is_interrupted: bool = False
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """True if a change was found, and nothing spoke against it."""
        return bool(self.changes) and (self.proof is None or self.proof.objection is None)


@dataclass(frozen=True)
class SearchLimits:
    """How far a search goes: runs without those of the proof, and at the same time, seconds, where a run ends (after so
    many calls or seconds, or where an expression is true), and the kinds of changes that are allowed. `with_guards`:
    guards that are cheaper to check are an aim too.
    """

    max_runs: int = 25
    max_time: float = 600.0
    max_calls: int | None = None
    max_seconds: float | None = None
    kinds: tuple[str, ...] = KINDS
    with_proof: bool = True
    until: str | None = None
    jobs: int = 1
    with_guards: bool = False


class Search:
    """Searches for the smallest change of a program that removes what can be removed.

    `job` is the unchanged program. `report` is called with each run that has ended.
    """

    def __init__(
        self,
        runner: ProcessRunner,
        job: ProgramJob,
        limits: SearchLimits,
        report: Callable[[FixResult, Attempt | None], None] = lambda result, attempt: None,
    ):
        self._runner = runner
        is_open = limits.max_calls is None and limits.max_seconds is None and limits.until is None
        self._job = replace(
            job,
            observes=True,
            stop_after=limits.max_calls,
            stop_after_s=limits.max_seconds,
            stop_until=limits.until,
            stops_when_quiet=is_open,
            requests=("guard_checks",) if limits.with_guards else (),
        )
        self._limits = limits
        self._report = report
        self._moves = list_moves()
        self._begin = time.monotonic()
        self._known: dict[frozenset[ProgramChange], State] = {}
        self._reported: set[frozenset[ProgramChange]] = set()
        #: The numbers of the states that are no better, and on which the search built.
        self._detours: set[int] = set()
        self._lock = threading.Lock()
        self._unchanged: list[State] = []
        self._sessions: dict[Path, SessionData] = {}
        self._own: list[State] = []
        #: The calls in the largest graph of the unchanged program, if it has a loop unrolled.
        self._unrolled = 0
        #: us of a check of each entry of the unchanged program, if cheaper guards are wanted.
        self._guards_us = 0.0
        self.result = FixResult()

    def run(self) -> FixResult:
        """Search to the end, or to an interrupt, which ends the search but not its result."""
        try:
            if self._begin_search():
                best = self._climb(self._unchanged[0])
                if best.score.result >= self._unchanged[0].score.result:
                    # Fewer failing guards led nowhere.
                    best = self._climb(self._unchanged[0], detours=0, with_hints=False)
                self._finish(self._leave_out(best))
        except KeyboardInterrupt:
            self.result.is_interrupted = True
        finally:
            self._runner.fork_no_more()
        self.result.seconds = time.monotonic() - self._begin
        return self.result

    # The unchanged program

    def _begin_search(self) -> bool:
        """Run the unchanged program twice; False if there is nothing to search."""
        first = self._measure((), "unchanged", backend="eager")
        end = explain_end(first.run.run)
        if first.run.run.exit_code is None or (end and not first.run.run.is_torchs):
            return self._stop(f"the unchanged program cannot be used: {end}")
        if not first.run.compiles and first.run.run.starts_processes:
            return self._stop(
                "nothing was compiled in the program's own process, and those that it starts cannot be changed"
            )
        self.result.program = self._read_program(first)
        seen = self._observe(first)
        types = {get_value_type(value) for cause in seen.causes for value in cause.values}
        backend = "aot_eager" if "float" in types else "eager"
        self.result.backend = backend
        has_steps = "code" in self._limits.kinds and any(CompileStep().propose(seen))
        self._unrolled = first.run.largest if has_steps else 0
        self._guards_us = first.run.guards_us if self._limits.with_guards else 0.0
        first = replace(first, is_unrolled=has_steps, has_guards=self._guards_us > 0)
        self.result.before = self.result.after = first
        if not first.score.is_open:
            return False
        self._job = replace(self._job, stop_after=self._find_horizon(first), stop_after_s=None, stops_when_quiet=False)
        if self._runner.timeout is None:
            self._runner.timeout = _LONGER * first.run.run.wall + _MORE_S
        if not (first.run.run.sets_environment or first.run.run.has_gpu or self._job.is_launched):
            self._runner.fork_from_now_on(first.run.run.modules)
        if backend != "eager":
            first = self._measure((), "unchanged", backend)
        second = self._measure((), "unchanged, again", backend)
        self._unchanged = [first, second]
        if first.run.run.exit_code != second.run.run.exit_code:
            return self._stop("two unchanged runs end with different exit codes")
        if first.score.result != second.score.result:
            third = self._measure((), "unchanged, once more", backend)
            self._unchanged = sorted([first, second, third], key=lambda state: state.score)
        counts = "; ".join(state.counts for state in self._unchanged)
        if not self._unchanged[0].score.is_open:
            return self._stop(f"what the first run has to fix is not in every run: {counts}")
        if self._unchanged[0].score[:-2] != self._unchanged[-1].score[:-2]:
            self.result.notes += (f"Unchanged runs differ by chance: {counts}.",)
        self.result.before = self.result.after = self._unchanged[0]
        self._report(self.result, None)
        if self._is_exhausted():
            limit = "--max-runs" if self.result.runs >= self._limits.max_runs else "--max-time"
            return self._stop(f"{limit} leaves nothing after {self.result.runs} runs of the unchanged program")
        return True

    def _stop(self, problem: str) -> bool:
        self.result.problem = problem
        return False

    def _read_program(self, first: State) -> Program:
        cells = {f"Cell In[{cell.number}]": cell.source for cell in self._job.cells}
        script = [] if self._job.is_module or cells else [os.path.abspath(self._job.script)]
        files = list(dict.fromkeys([*script, *first.run.run.files]))
        reader = SourceReader(True, map(os.path.dirname, script), script)
        texts = {os.path.realpath(file): text for file in files if (text := reader.find(file)) is not None}
        return Program({**cells, **texts}, {f"Cell In[{cell.number}]": cell.typed for cell in self._job.cells})

    def _find_horizon(self, first: State) -> int | None:
        """The call after which later runs end: those with compiles, and some more."""
        calls = first.calls
        if calls is None or not calls.count:
            return self._limits.max_calls
        if first.run.run.is_stopped:
            self.result.notes += (f"Each run ended after {calls.count:,} calls; what is compiled later was not seen.",)
        horizon = calls.last_compile + max(_FEWEST_CALLS, round(calls.last_compile * _MORE_CALLS))
        return min(horizon, calls.count) if horizon < calls.count or first.run.run.is_stopped else None

    # Runs

    def _measure(self, changes: Sequence[ProgramChange], what: str, backend: str | None) -> State:
        """Run the program with some changes. EditError if they cannot be applied together."""
        program = self.result.program
        files = program.apply(changes, is_run=True) if program is not None and changes else {}
        job = replace(
            self._job, backend=backend, files={name: (edited.text, edited.lines) for name, edited in files.items()}
        )
        with self._lock:
            self.result.runs += 1
            number = self.result.runs
        run = measure(self._runner, job, what)
        lines = program.count_lines(changes) if program is not None else 0
        calls = read_calls(run.run.session) if run.run.exit_code is not None else None
        is_unrolled = run.largest * _SMALLER > self._unrolled > 0
        has_guards = run.guards_us > self._guards_us * _CHEAPER > 0
        return State(tuple(changes), run, calls, lines, number, is_unrolled=is_unrolled, has_guards=has_guards)

    def _try(self, changes: Sequence[ProgramChange], what: str) -> State | None:
        """The program with some changes, judged; None if they cannot be applied, or there are no runs left."""
        key = frozenset(changes)
        if key not in self._known:
            if self._is_exhausted():
                return None
            try:
                state = self._measure(changes, what, self.result.backend)
            except CompilediagError as error:
                if not isinstance(error, EditError):
                    self.result.notes += (f"{what}: {error}",)
                return None
            self._known[key] = replace(state, objection=find_objection(self._unchanged, state))
        return self._known[key]

    def _run_ahead(self, wanted: Iterable[Sequence[ProgramChange]]) -> None:
        """Run the program with the first of some changes side by side, if that is allowed."""
        new = [changes for changes in wanted if frozenset(changes) not in self._known]
        new = new[: min(self._limits.jobs, self._limits.max_runs - self.result.runs)]
        if len(new) < 2 or self._is_exhausted():
            return
        with ThreadPoolExecutor(len(new)) as pool:
            runs = [
                pool.submit(self._try, changes, format_names([change.title for change in changes], 2))
                for changes in new
            ]
            try:
                wait(runs)
            except BaseException:
                self._runner.cancel()
                raise

    def _is_exhausted(self, kept: int = 0) -> bool:
        is_late = time.monotonic() - self._begin > self._limits.max_time
        return is_late or self.result.runs >= self._limits.max_runs - kept

    def _observe(self, state: State) -> Observation:
        assert self.result.program is not None
        evidence = Evidence.of(self._open(state))
        seen = Observation(self.result.program, evidence, is_uncached=bool(state.run.uncached))
        return seen if not self._unchanged or state is self._unchanged[0] else replace(seen, unchanged=self._first)

    @cached_property
    def _first(self) -> Observation:
        """What the unchanged program showed."""
        return self._observe(self._unchanged[0])

    def _open(self, state: State) -> SessionData:
        """The recording of a state. Kept, because the evidence does not keep it."""
        path = state.run.run.session
        if path not in self._sessions:
            self._sessions[path] = SessionData(path)
        return self._sessions[path]

    # The climb

    def _climb(self, best: State, detours: int = _MOST_DETOURS, with_hints: bool = True) -> State:
        """Build on the best state as long as a move makes it better. Then on states that are as good, in which another
        cause has taken the place of one that is gone: what a function does after a graph break in a loop, or after the
        recompile limit, is seen only then. `with_hints`: a first step may be one that only has fewer failing guards.
        """
        while (best is self._unchanged[0] or best.score.is_open) and (better := self._take_step(best, with_hints)):
            best, with_hints = better, True
        as_good = sorted(filter(partial(is_detour, best=best), self._known.values()), key=lambda state: state.rank)
        for state in as_good[:_MOST_DETOURS] if best.score.is_open and detours else ():
            self._detours.add(state.number)
            reached = self._climb(state, detours - 1)
            if is_better(reached, best):
                return self._climb(reached, detours)
        return best

    def _take_step(self, best: State, with_hints: bool) -> State | None:
        """The first state that is better, by the moves for what remains; on the unchanged program the best of several
        whole changes.
        """

        def is_step(state: State) -> bool:
            return is_better(state, best) and (with_hints or state.score.result < best.score.result)

        kept = _KEPT_RUNS if best.lines > 1 else 0
        if self._is_exhausted(kept):
            return None
        seen = self._observe(best)
        if best is self._unchanged[0]:
            found: list[State] = []
            for state in self._attempt_all(best, self._propose(FIRST, seen, 1)):
                if is_step(state):
                    found.append(state)
                    # Nothing is better than what leaves nothing, is one line and no setting.
                    is_least = not state.score.is_open and state.lines <= 1 and state.is_local
                    if is_least or state.score.unrolled < best.score.unrolled:
                        break
            if found:
                first = min(found, key=lambda state: state.rank)
                self._keep_better(first)
                return first
        for state in self._attempt_all(best, self._propose(self._moves, seen)):
            if is_step(state):
                self._keep_better(state)
                return state
            if self._is_exhausted(kept):
                break
        return None

    def _propose(
        self, moves: Iterable[Move], seen: Observation, each: int | None = None
    ) -> Iterator[tuple[str, Bundle]]:
        """The moves' names and bundles, of which some kinds may be excluded; `each`: so many of every move at most."""
        for move in moves:
            count = 0
            for bundle in move.propose(seen):
                allowed = tuple(change for change in bundle if change.kind in self._limits.kinds)
                if allowed and (each is None or count < each):
                    count += 1
                    yield type(move).__name__, allowed

    def _attempt_all(self, best: State, proposed: Iterable[tuple[str, Bundle]]) -> Iterator[State]:
        """The best state with each bundle in turn, as far as it can be added; where it edits the same code, in place of
        what did so before.
        """
        waiting = iter(proposed)
        while batch := list(itertools.islice(waiting, self._limits.jobs)):
            self._run_ahead(_add(best, bundle) for _, bundle in batch)
            for move, bundle in batch:
                changes = _add(best, bundle)
                if {*changes} == {*best.changes}:
                    continue
                title = format_names([change.title for change in bundle], 2)
                title += f", on top of [{best.number}]" if best.number in self._detours else ""
                state = self._try(changes, title)
                if state is None and best.changes:
                    state = self._try([*_drop_overlapping(best.changes, bundle), *bundle], title)
                if state is None:
                    continue
                if frozenset(state.changes) not in self._reported:
                    self._reported.add(frozenset(state.changes))
                    is_kept = is_better(state, best)
                    if is_kept:
                        self._keep_better(state)  # Before the report: an interrupt may follow it.
                    self.result.attempts.append(Attempt(state.number, title, state, best, is_kept, move))
                    self._report(self.result, self.result.attempts[-1])
                yield state

    def _keep_better(self, state: State) -> None:
        if self.result.after is None or state.rank < self.result.after.rank:
            self._keep(state)

    def _keep(self, state: State) -> None:
        self.result.after = state
        self.result.changes = state.changes

    # The smallest set

    def _leave_out(self, best: State) -> State:
        """Leave out each part that is not needed, the last ones first; all, if only fewer guards failed. After that,
        what was needed before is tried again.
        """
        if best.score.result >= self._unchanged[0].score.result:
            self._keep(self._unchanged[0])
            return self._unchanged[0]
        parts = tuple(part for change in best.changes for part in change.split())
        if len(parts) != len(best.changes):
            best = replace(best, changes=parts)
            self._known[frozenset(parts)] = best
        waiting, needed = [*reversed(parts)], list[ProgramChange]()
        while waiting:
            part, *waiting = waiting
            rest = _drop(best, part)
            if frozenset(rest) not in self._known:
                self._run_ahead(filter(None, (_drop(best, other) for other in (part, *waiting))))
            if not rest:
                self.result.without[part] = self._unchanged[0]
                continue
            state = self._try(rest, f"without {part.title}")
            if state is None:
                continue
            self.result.without[part] = state
            is_needed = state.objection is not None or state.score.result > best.score.result
            self._report(self.result, Attempt(state.number, f"without {part.title}", state, best, not is_needed))
            if is_needed:
                needed.append(part)
            else:
                best = state
                waiting, needed = [*waiting, *needed], []
        self._keep(best)
        return best

    # The end

    def _finish(self, best: State) -> None:
        result = self.result
        result.left = tuple(self._list_left(best))
        if not best.changes or not self._limits.with_proof:
            return
        self._runner.fork_no_more()
        accepted = [state for state in self._known.values() if is_better(state, self._unchanged[0])]
        ranked = sorted(accepted, key=lambda state: state.rank)
        for state in [best, *(state for state in ranked if state is not best)][:_MOST_PROOFS]:
            result.proof = self._prove(state)
            self._keep(state)
            if result.proof.objection is None:
                break
            # The program's own backend showed otherwise than the search.
            refuted = replace(state, objection=f"with the program's own backend: {result.proof.objection}")
            result.attempts = [replace(one, state=refuted) if one.state == state else one for one in result.attempts]
        best = result.after or best
        result.left = tuple(self._list_left(best))

    def _prove(self, state: State) -> Proof:
        """Run the program with its own backend, unchanged and changed, two times each and in turn."""
        afters: list[State] = []
        for number in range(2):
            if len(self._own) < 2:
                self._own.append(self._measure((), f"own backend, unchanged ({number + 1} of 2)", None))
            afters.append(self._measure(state.changes, f"own backend, changed ({number + 1} of 2)", None))
        objection = next(filter(None, (find_objection(self._own, after) for after in afters)), None)
        worst, least = max(afters, key=lambda one: one.score), min(self._own, key=lambda one: one.score)
        if objection is None and not is_better(worst, least):
            objection = "with the program's own backend the changes do not help"
        before, after = (min(states, key=lambda one: one.run.compile_seconds) for states in (self._own, afters))
        return Proof(before, replace(after, objection=objection))

    # What is left

    def _list_left(self, state: State) -> Iterator[Left]:
        seen = self._observe(state)
        begins = state.calls.begins if state.calls is not None else ()
        if state.is_unrolled:
            yield Left(f"a loop is unrolled: {format_amount(state.run.largest, 'call')} in a graph", "", "", 0, False)
        if state.run.uncached:
            graphs = format_amount(state.run.uncached, "graph")
            yield Left(f"no cache keeps {graphs}: autocast is entered inside", "", "", 0, False)
        for cause in seen.causes:
            advice, tried = advise(cause.alone), self._list_tried(self._list_own(seen, cause))
            named = [make_bundle(seen, change) for change in place_changes(advice.changes, cause)]
            named += DynamicTrue().propose(seen) if ALL_DYNAMIC in advice.action else ()
            is_refuted = bool(self._list_tried(named))
            numbers = dict.fromkeys(sum(begin <= row.time_ns for begin in begins) for row in cause.recompiles)
            yield Left(
                advice.what_changed,
                cause.user_place,
                "" if is_refuted else advice.suggestion,
                len(cause.recompiles),
                is_needed(cause),
                format_user_line(cause)[2:-1],
                tuple(number for number in numbers if number),
                tried,
            )
        breaks = group_by(list_breaks(seen.evidence), lambda row: (row.user_file, row.user_line, row.reason))
        for (file, line, reason), rows in breaks.items():
            change, text = describe_remedy(rows, seen.evidence)
            tried = self._list_tried([make_bundle(seen, change)] if change is not None else [])
            what, code = f"graph break: {reason}", format_line(rows[0].user_code or "", 80)
            yield Left(what, format_place(file, line), "" if tried else text, 0, False, code, (), tried)

    def _list_own(self, seen: Observation, cause: Cause) -> list[Bundle]:
        """What moves propose because of a cause."""
        others, own = (
            [bundle for _, bundle in self._propose(self._moves, replace(seen, chosen=chosen))]
            for chosen in ((), (cause,))
        )
        return [bundle for bundle in own if bundle not in others]

    def _list_tried(self, bundles: Iterable[Bundle]) -> tuple[TriedFor, ...]:
        """What was tried of some bundles, and what it gave."""
        wanted = [{*bundle} for bundle in bundles if bundle]
        found = (
            TriedFor(one.title, one.before.run.recompiles, one.state.run.recompiles, one.state.objection)
            for one in self.result.attempts
            if any(each <= {*one.state.changes} and not each <= {*one.before.changes} for each in wanted)
        )
        return tuple(dict.fromkeys(found))


def is_better(state: State, best: State) -> bool:
    """True if a state is accepted and does more than another one, or the same with fewer lines. If all else is equal,
    fewer failing guards are a step forward.
    """
    score, least = state.score, best.score
    # What ran eagerly at its recompile limit is compiled without it, and a loop that is not unrolled is a graph more.
    is_more = score.compiles > least.compiles and score.limits >= least.limits and score.unrolled >= least.unrolled
    # With entries of their own, recompiles are first compiles: as many, and each costs as much.
    is_renamed = score.compiles == least.compiles and score.recompiles < least.recompiles
    if state.objection is not None or is_more or (is_renamed and score[:4] == least[:4]):
        return False
    if score.result != least.result:
        return score.result < least.result
    return score.failures < least.failures and state.lines > best.lines


def is_detour(state: State, best: State) -> bool:
    """True if a state adds to another one and is as good, but something else is left. What remains to be compiled again
    does not count where breaks or limits hide it.
    """
    is_hidden = any(best.score[:2])
    is_same = state.score[:4] == best.score[:4] and (is_hidden or state.score.recompiles == best.score.recompiles)
    is_added = {*state.changes} > {*best.changes}
    return state.objection is None and is_same and is_added and bool(best.run.seen - state.run.seen)


def find_objection(without: Sequence[State], state: State) -> str | None:
    """Why a state is rejected: it does something else than the unchanged program, or less; None if nothing speaks
    against it.
    """
    base, run = without[0].run, state.run
    end = explain_end(run.run)
    if end is not None and not (base.run.raised and base.run.is_torchs and base.run.raised == run.run.raised):
        return end
    if run.run.exit_code != base.run.exit_code and not base.run.raised:
        return f"exit code {run.run.exit_code}"
    replaced = {change.uncompiled for change in state.changes} if run.functions else {}
    lost = [one for one in base.list_lost(run) if one[0] not in replaced]
    if lost:
        return f"{format_function(*lost[0], None)} is no longer compiled"
    if run.graph_breaks > max(one.run.graph_breaks for one in without):
        return f"adds graph breaks: {base.graph_breaks} -> {run.graph_breaks}"
    if run.refused > max(one.run.refused for one in without):
        return f"{format_amount(run.refused, 'function')} run eagerly"
    calls = [one.calls for one in without if one.calls is not None]
    if calls and state.calls is not None and (number := find_other_result(calls, state.calls)) is not None:
        return f"call {number} returns something else"
    if not base.run.raised:
        is_stopped = any(one.run.run.is_stopped for one in (*without, state))
        output = compare_outputs([one.run.run.stdout for one in without], [run.run.stdout], is_stopped)
        if output.is_same is False:
            return output.note
    return None


def _add(best: State, bundle: Bundle) -> list[ProgramChange]:
    """The changes with a bundle; without those that compile something else in place of the same function."""
    replaced = {change.uncompiled for change in bundle} - {None}
    return [*dict.fromkeys([*(change for change in best.changes if change.uncompiled not in replaced), *bundle])]


def _drop(best: State, part: ProgramChange) -> tuple[ProgramChange, ...]:
    return tuple(change for change in best.changes if change != part)


def _drop_overlapping(changes: Sequence[ProgramChange], bundle: Sequence[ProgramChange]) -> list[ProgramChange]:
    """The changes that do not edit what a bundle edits."""
    spans = [(name, splice.start, splice.end) for change in bundle for name, splice in change.parts]
    return [
        change
        for change in changes
        if not any(
            name == other and splice.start <= end and start <= splice.end
            for name, splice in change.parts
            for other, start, end in spans
        )
    ]
