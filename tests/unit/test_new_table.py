"""A new table is an event class in KINDS and a property: storage, typed rows, frames, export and pages follow."""

import subprocess
import sys

PROGRAM = """
import json, sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from compilediag import events
from compilediag.events import Event, column


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Event):
    kind: ClassVar[str] = "probe"
    table: ClassVar[str] = "probes"
    value: float | None = column("float64", "what was measured", unit="ms", sources=("prober",))
    text: str | None = column("string", "code of the user", user_data="code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark(Event):
    kind: ClassVar[str] = "mark"
    table: ClassVar[str] = "marks"
    place: int | None = column("Int64", "the only column of its own", sources=("prober",))


# What `events/__init__.py` does with kinds that stand in KINDS.
for kind in (Probe, Mark):
    events.KINDS = (*events.KINDS, kind)
    events.BY_TABLE[kind.table] = kind
    events._COLUMNS[kind.table] = events._read_columns(kind)

from compilediag.diagnosis.rules import coverage
from compilediag.storage.data import TableProperties
from compilediag import Session
from tests.inside import ViewModel
from tests.unit.session_builder import saved

TableProperties.probes = property(lambda self: self.table("probes"))
folder = Path(sys.argv[1])
session = saved(folder, Probe(time_ns=1, value=2.5, text="secret()"), Mark(time_ns=2, place=7))
[row] = session.data.rows(Probe)
session.export(folder / "tables", format="csv")
shown = json.dumps(ViewModel(session.data).snapshot(), default=str)
redacted = json.dumps(ViewModel(session.data, redact=True).snapshot(), default=str)
print(json.dumps({
    "row": [row.value, row.text],
    "only_column": [mark.place for mark in session.data.rows(Mark)],
    "frame": session.probes["value"].tolist(),
    "csv": "secret()" in (folder / "tables" / "probes.csv").read_text(),
    "page": ["secret()" in shown, "secret()" in redacted],
    "coverage": coverage.FEEDS["probes"],
}))
"""


def test_a_new_table_touches_one_module_of_events_and_one_of_storage(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.strip() == (
        '{"row": [2.5, "secret()"], "only_column": [7], "frame": [2.5], "csv": true, "page": [true, false], '
        '"coverage": ["prober"]}'
    ), done.stderr
