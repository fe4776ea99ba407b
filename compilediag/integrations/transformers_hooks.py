"""What `TransformersCallback` does at the events of a transformers Trainer."""

from __future__ import annotations

import sys
from typing import Any

from .training_watch import TrainingHooks, log_errors

#: Frames between an event's method and the trainer that are looked at.
MAX_FRAMES = 5


class TransformersHooks(TrainingHooks):
    """Records the compiles of a training, logs their numbers with the trainer's, and reports at the end.

        trainer = Trainer(..., callbacks=[TransformersCallback("run.cdiag", report="run.html")])

    `path` is the session's file, a temporary one if None; with several processes it is the folder `run/` with one file
    per rank. `report` is an HTML file. `detail` is that of `compilediag.watch`. With `show_plan`, rank zero prints the
    plan to stderr. `session` is the session of the last training.

    Each log of the trainer gets `compilediag/compiles`, `compilediag/recompiles`, `compilediag/compile_s` and
    `compilediag/lost_s` (s), so every integration of `report_to` shows them. They are the numbers of rank zero.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to record."""
        self._watch.begin(args.world_size, state.is_world_process_zero)
        _move_to_front(self)

    @log_errors
    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Add the numbers to what the trainer logs, and to its history, which has a copy of it."""
        metrics = self._watch.read_metrics()
        if logs is None or not metrics:
            return
        logs.update(metrics)
        if state.log_history and state.log_history[-1].get("step") == state.global_step:
            state.log_history[-1].update(metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop to record, write the report, print the plan."""
        self._watch.end()


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
