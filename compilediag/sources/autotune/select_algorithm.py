"""Autotuning of operators: a row per choice of `select_algorithm`, whoever timed it, and which one was taken.

torch's own `add_feedback_saver` shows what was timed, but not what did not compile, nor why, nor what a cache
answered, and any tool can clear it. So its steps are watched: the call of the selector, the tuning in it, the wait
for compiles, the look-up, each round of timing. Where the winner depends on what is fused to it, the scheduler
settles it later, and the rows wait for that.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any

from ...decode.records.autotune_choices import TimedChoice, TuningRecord, make_choices, make_run_id, parse_inputs
from ...recording import Made
from .. import _compat
from .._compat import tuning as places
from ..hooks.patching import Args, Before, Kwargs, Observer, Patch, Raised
from ..hooks.shield import told
from .tuner import Tuner
from .tuning_runs import TUNER, Here, Measured, Round, Run, facts, made_rows


class SelectAlgorithm(Tuner):
    name = "select_algorithm"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._here = Here()
        #: Tunings whose winner the scheduler has not settled yet, with their thread.
        self._open: list[tuple[int, Run]] = []
        #: Tunings whose times another thread waits for, and what processes said of choices, by id.
        self._pipelined: list[Run] = []
        self._measured: dict[int, Measured] = {}

    @classmethod
    def probe(cls) -> None:
        places.require(places.SELECT, places.PROCESS, places.IR, places.SCHEDULER, places.CODECACHE)

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        return {
            places.SELECT: self._selector_patches,
            places.CODECACHE: lambda: [self._patch(places.persistent_cache(), "lookup", self._looked_up)],
            places.PROCESS: self._process_patches,
            places.IR: self._buffer_patches,
            places.SCHEDULER: self._scheduler_patches,
        }

    def close(self) -> None:
        self._emit_open(lambda thread, run: True)

    def _patch(self, owner: Any, name: str, observe: Observer, before: Before | None = None) -> Patch:
        return Patch(owner, name, observe, self.guarded, before)

    def _selector_patches(self) -> list[Patch]:
        cache, module = places.selector_cache(), places.select_algorithm()
        rendered = [self._patch(places.generated_code(), "get_entry", self._rendered)] if self.detail == "full" else []
        return [
            self._patch(cache, "__call__", self._selected, self._selecting),
            self._patch(cache, "do_autotuning", self._tuned, self._tuning),
            self._patch(cache, "benchmark", self._benchmarked, self._benchmarking),
            self._patch(cache, "benchmark_choice", self._timed),
            self._patch(cache, "prescreen_choices", self._prescreened),
            self._patch(cache, "log_results", self._logged),
            self._patch(module, "as_completed", self._waiting),
            self._patch(module, "_log_autotune_exceptions", self._not_compiled),
            self._patch(places.extern_caller(), "output_node", self._taken),
            *rendered,
        ]

    def _process_patches(self) -> list[Patch]:
        return [
            self._patch(places.tuner_pool(), "target", self._asked, self._asking),
            self._patch(places.tuner_process(), "get", self._answered),
            self._patch(places.pipelined(), "get_results", self._results),
        ]

    def _buffer_patches(self) -> list[Patch]:
        owner = places.template_buffer()
        names = ("finalize_as_triton_caller", "finalize_as_triton_callers")
        return [self._patch(owner, name, self._finalized) for name in names]

    def _scheduler_patches(self) -> list[Patch]:
        owner = places.scheduler()
        return [
            self._patch(owner, "benchmark_codegened_module", self._fused),
            self._patch(owner, "finalize_multi_template_buffers", self._settled),
        ]

    # The call of the selector, and the tuning in it.

    def _selecting(self, args: Args, kwargs: Kwargs) -> None:
        self._here.calls.append([])

    def _selected(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        runs = self._here.calls.pop() if self._here.calls else []
        for run in runs:
            # torch 2.13 gives (node, choice), 2.11 the node alone.
            winner = result[1] if isinstance(result, tuple) else run.fastest()
            if winner is not None and not run.settled:
                run.settle(winner)
            self._emit_run(run)
        if error is not None and not runs:
            name, layout = (_compat.argument(args, kwargs, *at) for at in ((1, "name"), (4, "layout")))
            self.emit(
                _no_choice, _begun(name, layout, None, []), self.frame(_compat.current_compile_id()), _text(error)
            )

    def _tuning(self, args: Args, kwargs: Kwargs) -> None:
        wanted = (1, "name"), (3, "layout"), (5, "inputs_key"), (6, "choices")
        name, layout, key, choices = (_compat.argument(args, kwargs, *at) for at in wanted)
        run = _begun(name, layout, key, choices)
        # What a compile left open that failed before its scheduler could settle it.
        self._emit_open(lambda thread, left: thread == get_ident() and left.compile_id != run.compile_id)
        self._here.runs.append(run)

    def _tuned(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if not self._here.runs:
            return
        run = self._here.runs.pop()
        run.waited()
        run.measured = {id(c): self._measured.pop(id(c)) for c in run.choices if id(c) in self._measured}
        run.times = result or {}
        if error is not None:
            run.error = _text(error)
            run.settle(None)
        if result is None and error is None:
            self._pipelined.append(run)
        elif self._here.calls:
            self._here.calls[-1].append(run)
        elif error is not None:
            self._emit_run(run)
        else:
            self._open.append((get_ident(), run))

    def _waiting(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._here.runs:
            run = self._here.runs[-1]
            run.waits(args[0])
            templates = any(type(choice).__name__ == "TritonTemplateCaller" for choice in args[0].values())
            run.threads = places.compilers(len(run.choices), templates)

    def _not_compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._here.runs:
            self._here.runs[-1].failed.update((id(choice), _text(why)) for choice, why in args[0])

    def _prescreened(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._here.runs:
            self._here.runs[-1].waited()
            self._here.runs[-1].prescreening = bool(result)

    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        wanted = (2, "op"), (3, "inputs"), (4, "benchmark")
        op, key, benchmark = (_compat.argument(args, kwargs, *at) for at in wanted)
        if error is not None and not self._here.runs:
            # The look-up before the tuning, which only spares it the compiles.
            self.look_up(_compat.current_compile_id(), "local", "failed", f"{op}: {key}", error=error)
        if benchmark is None or not self._here.runs:
            return
        run = self._here.runs[-1]
        hit = not any(done.stage == run.stage for done in run.rounds)
        if not run.prescreening:
            run.looked_up, run.answered = True, hit and error is None
        run.prescreening = False
        outcome = "miss" if not hit else "hit" if error is None else "failed"
        outcome = outcome if places.cache_is_on() else "disabled"
        self.look_up(run.compile_id, "local", outcome, f"{op}: {key}", error=error if hit else None)

    def _rendered(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if args[1] is not None:
            outcome = "miss" if result is None else "hit"
            self.look_up(_compat.current_compile_id(), "memory", outcome, None, cache="triton_template")

    # Rounds of timing, in this process and in others.

    def _benchmarking(self, args: Args, kwargs: Kwargs) -> None:
        choices = list(_compat.argument(args, kwargs, 1, "choices"))
        if not self._here.runs:
            # A tool kept the function that times the choices of an earlier tuning again.
            run = _begun(None, _compat.argument(args, kwargs, 3, "layout"), None, choices)
            run.looked_up = True
            self._here.runs.append(run)
        run = self._here.runs[-1]
        run.rounds.append(Round(run.stage, choices))

    def _benchmarked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        run = self._here.runs[-1]
        run.rounds[-1].ends(result, None if error is None else _text(error))
        if run.op is None:
            self._here.runs.pop()
            self._emit_run(run)

    def _timed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None and self._here.runs:
            self._here.runs[-1].failed[id(args[1])] = _text(error)

    def _asking(self, args: Args, kwargs: Kwargs) -> None:
        self._here.asked = args[1]

    def _answered(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._here.asked is not None:
            reason = None if error is None else _text(error)
            self._measured[id(self._here.asked)] = Measured(args[0].process, args[0].device, reason)

    def _asked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._here.asked = None
        if error is not None:
            self._measured.setdefault(id(args[1]), Measured(reason=_text(error)))

    def _results(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._here.results = (*args[1:3], result)

    def _logged(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The end of a pipelined tuning, told in the thread that waited for the times."""
        if not self._here.results or args[2] is not self._here.results[2]:
            return
        choices, key, times = self._here.results
        self._here.results = ()
        run = next((r for r in self._pipelined if any(r.has(choice) for choice in choices)), None)
        if run is None:
            run = _begun(args[0], choices[0].layout, key, choices)
        else:
            self._pipelined.remove(run)
        run.choices = [*run.choices, *(choice for choice in choices if not run.has(choice))]
        run.compile_id, run.times = _compat.current_compile_id(), times
        run.measured = {id(choice): Measured() for choice in choices}
        run.rounds.append(Round("benchmark", list(choices), times=times))
        self._open.append((get_ident(), run))

    # What the scheduler settles.

    def _fused(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        choice = places.fused_choice()
        for run in self._mine() if choice is not None else ():
            if run.has(choice):
                timed = Round("fusion", [choice])
                timed.ends(None if result is None else {choice: result[0]}, None if error is None else _text(error))
                timed.seconds = None
                run.rounds.append(timed)

    def _finalized(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        for choice in args[1].values() if isinstance(args[1], dict) else args[1:2]:
            self._settle(choice)

    def _taken(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._open:
            self._settle(args[0])

    def _settle(self, choice: Any) -> None:
        for run in self._mine():
            if run.has(choice):
                run.settle(choice)

    def _settled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._open:
            self._emit_open(lambda thread, run: thread == get_ident())

    def _mine(self) -> list[Run]:
        return [run for thread, run in self._open if thread == get_ident()]

    def _emit_open(self, which: Callable[[int, Run], bool]) -> None:
        ready = [item for item in self._open if which(*item)]
        for item in ready:
            self._open.remove(item)
            self._emit_run(item[1])

    def _emit_run(self, run: Run) -> None:
        self.emit(made_rows, *facts(run, self.frame(run.compile_id)))


def _begun(name: str | None, layout: Any, key: str | None, choices: list[Any]) -> Run:
    device = getattr(layout, "device", None)
    return Run(name, None if device is None else str(device), key, list(choices), _compat.current_compile_id())


def _no_choice(run: Run, frame: dict[str, Any], reason: str) -> Made:
    """The row of a tuning that had nothing to choose from."""
    timed = TimedChoice(name=None, is_winner=False, fail_reason=reason)
    return make_choices(
        TuningRecord(
            tuner=TUNER,
            op=run.op,
            time_ns=run.began_ns,
            inputs=parse_inputs(run.key),
            device=run.device,
            compile_id=run.compile_id,
            frame=frame,
            run_id=make_run_id(TUNER),
            timed=[timed],
        )
    )


def _text(error: BaseException) -> str:
    """An error's own text, lines and all, after its class; in one line if that can't be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return told(error)
