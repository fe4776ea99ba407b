"""The compiler's metrics for OpenTelemetry; needs its API: `pip install 'compilediag[opentelemetry]'`.

from compilediag.integrations.opentelemetry import instrument

instrument()
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter

from ..version import __version__
from . import metrics


def instrument(meter_provider: MeterProvider | None = None) -> Instrumentation:
    """Watch the process and give OpenTelemetry's meter `compilediag` what is counted: `torch.compile.recompiles` and
    the others of `compilediag.integrations.metrics`.

    Args:
        meter_provider: by default the global one.

    Raises:
        CompilediagError: torch can't be imported.
    """
    return Instrumentation(meter_provider)


class Instrumentation:
    """What `instrument` returns; `uninstrument` ends it."""

    def __init__(self, meter_provider: MeterProvider | None):
        meter = get_meter("compilediag", __version__, meter_provider)
        makers = {
            "counter": meter.create_observable_counter,
            "gauge": meter.create_observable_up_down_counter,
        }
        about: dict[metrics.Metric, dict[str, Any]] = {
            metric: {"name": metric.name, "unit": metric.unit, "description": metric.text} for metric in metrics.METRICS
        }
        durations = meter.create_histogram(
            **about[metrics.DURATION], explicit_bucket_boundaries_advisory=metrics.BOUNDS
        )
        self._measuring = metrics.Measuring(
            lambda value, labels: durations.record(value, _name(metrics.DURATION, labels))
        )
        for metric in metrics.METRICS:
            if metric.kind in makers:
                makers[metric.kind](**about[metric], callbacks=[functools.partial(self._observe, metric)])

    def uninstrument(self) -> None:
        """End the watch. What was counted stays with the meter."""
        self._measuring.close()

    def _observe(self, metric: metrics.Metric, options: CallbackOptions) -> Iterator[Observation]:
        for labels, value in self._measuring.read()[metric].items():
            yield Observation(value, _name(metric, labels))


def _name(metric: metrics.Metric, labels: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in zip(metric.labels, labels, strict=True) if value}
