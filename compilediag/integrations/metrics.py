"""What the compiler does, as metrics of a process that serves or trains for days. Both exporters have the same ones.

Names and units follow OpenTelemetry's conventions, and those that .NET and the JVM have for their compilers; Prometheus
has the same names with its own spelling. A process has at most `MAX_FUNCTIONS` values of the label `function`; further
functions are "other".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..diagnosis.incidents import Incident, IncidentFinder, make_incident_fingerprint, name_causes
from ..events import CacheLookup, Compile, CudaGraphAction, Event, GuardFailure, Recompile
from ..system.interrupts import pass_on
from ..system.own_errors import log_debug
from ..watch import Turn, listen, watch

#: At most so many functions have a name of their own.
MAX_FUNCTIONS = 50
OTHER = "other"
#: Upper bounds of the histogram of durations, in s: from a frame without a graph to max-autotune of a large model.
BOUNDS = (0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


@dataclass(frozen=True)
class Metric:
    """`unit` is UCUM's, as OpenTelemetry has it: in braces for what is counted. `own_labels` are those that only some
    metrics have.
    """

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    text: str
    own_labels: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels. The rank is empty if there is no distributed job."""
        return (*self.own_labels, "rank")


COMPILES = Metric(
    *("torch.compile.compiles", "counter", "{compile}", "Compiles of a frame; recompiles are among them."),
    own_labels=("function", "outcome"),
)
RECOMPILES = Metric(
    *("torch.compile.recompiles", "counter", "{compile}", "Compiles because the guards of all entries failed."),
    own_labels=("function", "fingerprint"),
)
DURATION = Metric(
    *("torch.compile.compilation.duration", "histogram", "s", "Duration of a compile, backend included."),
    own_labels=("function",),
)
AFTER_WARMUP = Metric(
    *("torch.compile.after_warmup", "counter", "{incident}", "What compiled or missed a cache after the warm-up."),
    own_labels=("kind", "function", "fingerprint"),
)
LOOKUPS = Metric(
    *("torch.compile.cache.lookups", "counter", "{lookup}", "Look-ups in the compiler's caches."),
    own_labels=("cache", "outcome"),
)
CAPTURES = Metric(
    *("torch.compile.cudagraph.captures", "counter", "{capture}", "Captures of CUDA graphs, repeated ones included."),
    own_labels=("function", "action"),
)
FAILURES = Metric(
    *("torch.compile.guard.failures", "counter", "{guard}", "Guards that failed in recompiles."), own_labels=("kind",)
)
ACTIVE = Metric("torch.compile.active_compiles", "gauge", "{compile}", "Compiles that run now.")
METRICS = (COMPILES, RECOMPILES, DURATION, AFTER_WARMUP, LOOKUPS, CAPTURES, FAILURES, ACTIVE)

#: Values by what a metric's labels are, in the order of `Metric.labels`; empty where one is not known.
Values = dict[tuple[str, ...], float]


class Measuring:
    """Watches this process in "lean" detail, and counts, until `close`.

    Without another watch the session has a temporary file, so that `compilediag.current().plan()` explains an alert;
    if that file is lost, only fingerprints are. `on_duration` is called with each value of a histogram, as it comes.

    Raises:
        CompilediagError: torch can't be imported.
    """

    def __init__(self, on_duration: Callable[[float, tuple[str, ...]], None] = lambda value, labels: None):
        self._on_duration = on_duration
        self._lock = threading.Lock()
        self._values: dict[Metric, Values] = {metric: {} for metric in METRICS}
        #: Recompiles and incidents without their fingerprints, which only a session knows.
        self._unnamed: list[tuple[Metric, Incident | Recompile, tuple[str, ...], str]] = []
        self._functions: set[str] = set()
        self._incidents = IncidentFinder()
        self._watch = watch(None, "lean")
        self._stop = listen(self._take)
        try:
            self._session = self._watch.__enter__()
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """End it. What was counted stays."""
        self._watch.__exit__(None, None, None)
        self._stop()

    def read(self) -> dict[Metric, Values]:
        """What was counted so far: counters and gauges by their labels."""
        with self._lock:
            unnamed, self._unnamed = self._unnamed, []
        names: dict[str, str] = {}
        if unnamed:
            try:
                with self._session.data.settled():
                    names = name_causes(self._session.data)
            except Exception as error:
                pass_on(error)
                log_debug("compilediag: fingerprints are not known: %r", error)
        with self._lock:
            for metric, row, labels, rank in unnamed:
                found = names.get(row.compile_key or "", "")
                if not found and not isinstance(row, Recompile):
                    found = make_incident_fingerprint(row)
                self._add(metric, getattr(row, "count", 1), (*labels, found, rank))
            return {metric: dict(values) for metric, values in self._values.items()}

    def _take(self, turn: Turn) -> None:
        """Count what is new; called in the writer's thread."""
        rank = "" if turn.rank is None else str(turn.rank)
        with self._lock:
            for event in turn.events:
                self._count(event, rank)
            for incident in self._incidents.add(turn.events, turn.warmup):
                self._unnamed.append((AFTER_WARMUP, incident, (incident.kind, self._name(incident)), rank))
            self._values[ACTIVE] = {(rank,): len(turn.running)}

    def _count(self, event: Event, rank: str) -> None:
        match event:
            case Compile():
                self._add(COMPILES, 1, (self._name(event), event.outcome or OTHER, rank))
                if event.duration_s is not None:
                    self._on_duration(event.duration_s, (self._name(event), rank))
            case Recompile():
                self._unnamed.append((RECOMPILES, event, (self._name(event),), rank))
            case CacheLookup(action="look_up"):
                self._add(LOOKUPS, 1, (event.cache or OTHER, event.outcome or OTHER, rank))
            case CudaGraphAction(action="record" | "rerecord" | "user_capture" as action):
                self._add(CAPTURES, 1, (self._name(event), action, rank))
            case GuardFailure():
                self._add(FAILURES, 1, (event.guard_kind or OTHER, rank))

    def _add(self, metric: Metric, value: float, labels: tuple[str, ...]) -> None:
        values = self._values[metric]
        values[labels] = values.get(labels, 0) + value

    def _name(self, event: Compile | Recompile | CudaGraphAction | Incident) -> str:
        """The function without its line, which every edit changes."""
        name = f"{event.function or '?'} ({os.path.basename(event.file or '?')})"
        if len(self._functions) < MAX_FUNCTIONS:
            self._functions.add(name)
        return name if name in self._functions else OTHER
