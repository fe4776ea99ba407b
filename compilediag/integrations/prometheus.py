"""The compiler's metrics for Prometheus; needs prometheus_client: `pip install 'compilediag[prometheus]'`.

from prometheus_client import REGISTRY
from compilediag.integrations.prometheus import Collector

REGISTRY.register(Collector())
"""

from __future__ import annotations

import bisect
import itertools
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from . import metrics

_FAMILIES = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily}


class Collector:
    """Watches the process, and gives a scrape what was counted: `torch_compile_recompiles_total` and the others of
    `compilediag.integrations.metrics`.

    Raises:
        CompilediagError: torch can't be imported.
    """

    def __init__(self) -> None:
        #: Of each histogram's labels: how many values are in each bucket, and their sum.
        self._buckets: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
        self._measuring = metrics.Measuring(self._record)

    def close(self) -> None:
        """End the watch. What was counted stays."""
        self._measuring.close()

    def _record(self, value: float, labels: tuple[str, ...]) -> None:
        counts, total = self._buckets.setdefault(labels, ([0] * (len(metrics.BOUNDS) + 1), [0.0]))
        counts[bisect.bisect_left(metrics.BOUNDS, value)] += 1
        total[0] += value

    def describe(self) -> list[Metric]:
        """The metrics, without values."""
        return [
            _FAMILIES[metric.kind](
                metric.name.replace(".", "_") + ("_seconds" if metric.unit == "s" else ""),
                metric.text,
                labels=metric.labels,
            )
            for metric in metrics.METRICS
        ]

    def collect(self) -> list[Metric]:
        """The metrics as they are now."""
        families: list[Any] = self.describe()
        bounds = [*map(floatToGoString, metrics.BOUNDS), "+Inf"]
        for family, values in zip(families, self._measuring.read().values(), strict=True):
            if isinstance(family, HistogramMetricFamily):
                for labels, (counts, total) in list(self._buckets.items()):
                    # Of each bucket its upper bound, and how many values are not above it.
                    buckets = zip(bounds, map(float, itertools.accumulate(counts)), strict=True)
                    family.add_metric(labels, [*buckets], sum_value=total[0])
            else:
                for labels, value in values.items():
                    family.add_metric(labels, value)
        return families
