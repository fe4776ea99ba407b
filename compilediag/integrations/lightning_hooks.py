"""What `LightningCallback` does at the events of a Lightning Trainer."""

from __future__ import annotations

from typing import Any

from .training_watch import TrainingHooks, log_errors


class LightningHooks(TrainingHooks):
    """Records the compiles of `trainer.fit`, logs their numbers with the trainer's loggers, and reports at the end.

        trainer = Trainer(..., callbacks=[LightningCallback("run.cdiag", report="run.html")])

    `path` is the session's file, a temporary one if None; with several processes it is the folder `run/` with one file
    per rank. `report` is an HTML file. `detail` is that of `compilediag.watch`. With `show_plan`, rank zero prints the
    plan to stderr. `session` is the session of the last fit.

    Every `log_every_n_steps` batches and at the end, each logger gets `compilediag/compiles`, `compilediag/recompiles`,
    `compilediag/compile_s` and `compilediag/lost_s` (s). They are the numbers of rank zero.
    """

    _batches = 0

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin to record, before the first forward pass."""
        if stage == "fit":
            self._batches = 0
            self._watch.begin(trainer.world_size, trainer.is_global_zero)

    def on_train_batch_end(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        """Log now and then."""
        self._batches += 1
        if trainer.log_every_n_steps and self._batches % trainer.log_every_n_steps == 0:
            self._log(trainer)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Log the last numbers, stop to record, write the report, print the plan."""
        if stage == "fit":
            self._log(trainer)
            self._watch.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """The same for a training that raises or is interrupted."""
        self._log(trainer)
        self._watch.end()

    @log_errors
    def _log(self, trainer: Any) -> None:
        """Give the numbers to the loggers themselves: `pl_module.log` would be traced in a compiled module."""
        metrics = self._watch.read_metrics()
        for logger in trainer.loggers if metrics else ():
            logger.log_metrics(metrics, step=trainer.global_step)
