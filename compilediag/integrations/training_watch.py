"""The watch of one training: begins and ends with it, and has its numbers for the trainer's loggers; and what the
callbacks of trainers do with it.

Nothing here raises into the training, and ranks never wait for each other.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from ..document import escape_unprintable
from ..session import Session, load
from ..system.files import write_file
from ..system.interrupts import pass_on
from ..views.summary import format_closing_line
from ..views.totals import compute_totals
from ..watch import start, step, stop

logger = logging.getLogger("compilediag")

#: The totals that a logger gets, each as `compilediag/compiles`.
METRICS = ("compiles", "recompiles", "compile_s", "lost_s")

#: Frames between an event's method and the trainer that are looked at.
MAX_FRAMES = 5

Result = TypeVar("Result")


def read_metrics(session: Session) -> dict[str, float]:
    """The totals of a session for a logger: compiles, recompiles, seconds compiling, and seconds lost to recompiles.

    The names are `compilediag/compiles`, `compilediag/recompiles`, `compilediag/compile_s` and `compilediag/lost_s`.

    Args:
        session: the session, also one that is being recorded.
    """
    with session.settled():
        totals: dict[str, Any] = {**compute_totals(session.data)}
    return {f"compilediag/{name}": totals[name] for name in METRICS}


def log_errors(method: Callable[..., Result]) -> Callable[..., Result | None]:
    """Make a method log what it raises, and return None then: a training does not fail because of its diagnosis."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Result | None:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            pass_on(error)
            logger.warning("compilediag: %s failed, the training goes on: %s", method.__name__, error)
            return None

    return call


class TrainingWatch:
    """Records a training to `path` and writes `report` at its end: what the callbacks of all trainers have in common.
    Their docstrings explain the options.

    In a job of several ranks each rank has its own file in a folder: `path` itself, or `run/` for `run.cdiag`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        report: str | os.PathLike[str] | None = None,
        detail: str = "full",
        show_plan: bool = True,
        warmup_steps: int | None = None,
        on_compile: str = "count",
        attach: bool = False,
    ):
        super().__init__()
        #: That of the last training.
        self.session: Session | None = None
        self._path = None if path is None else os.fspath(path)
        self._report = None if report is None else Path(report)
        self._options: dict[str, Any] = {"detail": detail, "warmup_steps": warmup_steps, "on_compile": on_compile}
        self._show_plan, self._attach = show_plan, attach
        self._is_first = True
        self._is_running = False

    @log_errors
    def begin(self, ranks: int, is_first: bool) -> None:
        """Begin to record. `is_first` is true for rank zero, which logs, reports and prints."""
        self.end()
        self._is_first = is_first
        if self._path is not None and ranks > 1:
            # A slash at the end means a folder with a file for each rank: `run/` for `run.cdiag`.
            self._path = os.path.join(self._path.removesuffix(".cdiag"), "")
        if self._path is not None:
            Path(self._path).absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.session = start(self._path, **self._options)
        self._is_running = True
        # A training that raises calls no hook of some trainers.
        atexit.register(self.end)

    @log_errors
    def read_metrics(self) -> dict[str, float]:
        """The totals so far; empty on other ranks than the first, and before the training began."""
        return read_metrics(self.session) if self.session is not None and self._is_first else {}

    @log_errors
    def end(self) -> None:
        """Stop to record; rank zero writes the report and prints the plan. Does nothing if it has ended already."""
        if not self._is_running:
            return
        self._is_running = False
        atexit.unregister(self.end)
        stop()
        own = self.session
        if not self._is_first or own is None:
            return
        # The results are of all ranks whose files are here, as far as they are: this rank does not wait for the others.
        places = (own.path, own.path.parent)  # Not those of a watch around the training.
        path = self._path if self._path is not None and Path(self._path).absolute() in places else None
        session = load(path) if path is not None and Path(path).is_dir() else own
        if self._report is not None:
            self._report.absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            session.report(self._report)
        if self._attach:
            self._attach_results(session)
        if not self._show_plan or sys.stderr is None:
            return
        plan = session.plan()
        text = f"{plan}\n" if plan.steps else ""
        line = format_closing_line(session.data, path, keep="path='run.cdiag' keeps it")
        print(escape_unprintable(f"{text}{line}", sys.stderr.encoding), file=sys.stderr)

    @log_errors
    def _attach_results(self, session: Session) -> None:
        with tempfile.TemporaryDirectory(prefix="compilediag-", ignore_cleanup_errors=True) as folder:
            saved, report = Path(folder, "run.cdiag"), Path(folder, "run.html")
            session.save(saved)
            if self._report is not None:
                write_file(report, self._report.read_text(encoding="utf-8"))
            else:
                session.report(report)
            for tracker in (attach_to_wandb, attach_to_mlflow):
                tracker((report, saved))


@log_errors
def attach_to_wandb(files: Iterable[Path]) -> None:
    """Add files to the run of Weights & Biases that the program began, as one artifact; nothing without a run."""
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    if wandb is None or run is None:
        return
    artifact = wandb.Artifact(f"compilediag-{run.id}", type="compilediag")
    for file in files:
        artifact.add_file(str(file))
    run.log_artifact(artifact)


@log_errors
def attach_to_mlflow(files: Iterable[Path]) -> None:
    """Add files to the active run of MLflow, in the folder `compilediag`; nothing without a run."""
    mlflow = sys.modules.get("mlflow")
    if mlflow is None or mlflow.active_run() is None:
        return
    for file in files:
        mlflow.log_artifact(str(file), "compilediag")


class LightningHooks(TrainingWatch):
    """Records the compiles of `trainer.fit`, logs their numbers with the trainer's loggers, and reports at the end.

        trainer = Trainer(..., callbacks=[LightningCallback("run.cdiag", report="run.html")])

    `session` is the session of the last fit.

    Every `log_every_n_steps` batches and at the end, each logger gets `compilediag/compiles`, `compilediag/recompiles`,
    `compilediag/compile_s` and `compilediag/lost_s` (s). They are the numbers of rank zero.

    Args:
        path: the session's file; None for a temporary one. With several processes, the folder `run/` with one file per
            rank.
        report: the HTML report to write at the end.
        detail: "full" or "lean", as in `compilediag.watch`.
        show_plan: rank zero prints the plan to stderr at the end.
        warmup_steps: after so many steps, nothing should compile.
        on_compile: "count", "warn" or "raise", if something compiles after these steps.
        attach: at the end, rank zero adds the report and the session to the run of Weights & Biases and of MLflow that
            the program began.
    """

    _batches = 0

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin to record, before the first forward pass."""
        if stage == "fit":
            self._batches = 0
            self.begin(trainer.world_size, trainer.is_global_zero)

    @log_errors
    def on_train_batch_start(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        """What compiles from here on belongs to this step."""
        step(trainer.global_step)

    def on_train_batch_end(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        """Log now and then."""
        self._batches += 1
        if trainer.log_every_n_steps and self._batches % trainer.log_every_n_steps == 0:
            self._log(trainer)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Log the last numbers, stop to record, write the report, print the plan."""
        if stage == "fit":
            self._log(trainer)
            self.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """The same for a training that raises or is interrupted."""
        self._log(trainer)
        self.end()

    @log_errors
    def _log(self, trainer: Any) -> None:
        """Give the numbers to the loggers themselves: `pl_module.log` would be traced in a compiled module."""
        metrics = self.read_metrics()
        for logger in trainer.loggers if metrics else ():
            logger.log_metrics(metrics, step=trainer.global_step)


class TransformersHooks(TrainingWatch):
    """Records the compiles of a training, logs their numbers with the trainer's, and reports at the end.

        trainer = Trainer(..., callbacks=[TransformersCallback("run.cdiag", report="run.html")])

    `session` is the session of the last training.

    Each log of the trainer gets `compilediag/compiles`, `compilediag/recompiles`, `compilediag/compile_s` and
    `compilediag/lost_s` (s), so every integration of `report_to` shows them. They are the numbers of rank zero.

    Args:
        path: the session's file; None for a temporary one. With several processes, the folder `run/` with one file per
            rank.
        report: the HTML report to write at the end.
        detail: "full" or "lean", as in `compilediag.watch`.
        show_plan: rank zero prints the plan to stderr at the end.
        warmup_steps: after so many steps, nothing should compile.
        on_compile: "count", "warn" or "raise", if something compiles after these steps.
        attach: at the end, rank zero adds the report and the session to the run of Weights & Biases and of MLflow that
            the program began.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to record."""
        self.begin(args.world_size, state.is_world_process_zero)
        _move_to_front(self)

    @log_errors
    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """What compiles from here on belongs to this step."""
        step(state.global_step)

    @log_errors
    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Add the numbers to what the trainer logs, and to its history, which has a copy of it."""
        metrics = self.read_metrics()
        if logs is None or not metrics:
            return
        logs.update(metrics)
        if state.log_history and state.log_history[-1].get("step") == state.global_step:
            state.log_history[-1].update(metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop to record, write the report, print the plan."""
        self.end()


@log_errors
def _move_to_front(callback: TransformersHooks) -> None:
    """Make a callback the first of its trainer's.

    A trainer calls its loggers (TensorBoard, W&B) before the callbacks that the user passes, and with one dict: what a
    later callback adds does not reach them. No event is given the list of callbacks, so it is looked up in the caller.
    """
    frame = sys._getframe()
    for _ in range(MAX_FRAMES):
        if frame.f_back is None:
            return
        frame = frame.f_back
        callbacks = getattr(frame.f_locals.get("self"), "callbacks", None)
        if isinstance(callbacks, list) and callback in callbacks:
            # The caller iterates over this list: what comes after this callback keeps its place.
            callbacks.remove(callback)
            callbacks.insert(0, callback)
            return
