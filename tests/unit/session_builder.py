"""Sessions for tests: events go through the real recorder into a real file, and no torch is needed."""

import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import compilediag as cd
from compilediag.diagnosis import merge_fixes
from compilediag.events import Recompile, SourceStatus
from tests import inside

SECOND = 1_000_000_000
#: The pid is larger than any that Linux gives: nobody records to these files any more.
META = {
    "pid": 4_194_305,
    "detail": "full",
    "title": "test",
    "torch_version": "2.13",
    "created_ns": SECOND,
    "stopped_ns": None,
}


def read_documented():
    """table -> column -> dtype of pandas, in the order of the DataFrame, as docs/tables.md has them."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "tables.md").read_text()
    head, *parts = re.split(r"^## `(\w+)`.*$", text, flags=re.M)
    row = re.compile(r"^\| `(\w+)` \| ([^|]*?)(?:, \w+)? \|", re.M)
    common, *sections = (
        {name: dtype.replace("json", "object") for name, dtype in row.findall(part.partition("\n#")[0])}
        for part in ("\n" + head.partition("\n")[2], *parts[1::2])
    )
    tables = dict(zip(parts[::2], sections, strict=True))
    first = {"compile_id": common.pop("compile_id")}
    return {name: own if name == "events" else {**first, **own, **common} for name, own in tables.items()}


class Feed:
    """What a recorder asks of a source; keeps what went wrong."""

    def __init__(self, name="compiles"):
        self.name, self.events, self.dropped, self.errors = name, 0, 0, []

    def note_error(self, error):
        self.errors.append(error)

    def status(self):
        return SourceStatus(
            time_ns=SECOND, name=self.name, status="active", events=self.events, dropped=self.dropped, overhead_s=0.5
        )


def put(recorder, *items, feed=None):
    """Hand events, or (artifact, text) pairs, to a recorder at once."""
    feed = feed or (recorder.feeds[0] if recorder.feeds else Feed())
    recorder.put(feed, lambda: items)


def recording(folder, *items, feed_name="compiles", **options):
    """(session, recorder, feed) of a recording that goes on; the caller closes the recorder."""
    recorder = inside.Recorder(folder / "run.cdiag", {**META, "created_ns": time.time_ns()}, **options).begin()
    feed = Feed(feed_name)
    recorder.feeds = [feed]
    put(recorder, *items)
    return cd.Session(inside.RecordedData(recorder.path, recorder.flush)), recorder, feed


def saved(folder, *items, **options):
    """The session of a recording that is over and holds just these items."""
    session, recorder, _ = recording(folder, *items, **options)
    recorder.close()
    session.data.end_recording()
    return session


def stored(folder, *events, **facts):
    """The session of a file with just these rows, which can be of several processes and ranks."""
    store = inside.Store.create(folder / "run.cdiag", {**META, **facts})
    store.append(events)
    store.close()
    return cd.load(store.path)


def make_plan(*steps, **fields):
    """A plan of steps, each given by its edits, settings, file, ...; `fields` are those of the plan."""
    with tempfile.TemporaryDirectory() as folder:
        place = {"function": "forward", "guard_source": "x.size()[0]", "guard_kind": "tensor_size"}
        found = stored(Path(folder), Recompile(time_ns=SECOND, expected="4", actual="6", **place)).plan()
    bare = {"settings": None, "edits": (), "file": None, "line": None, "code": None}
    made = tuple(replace(found.steps[0], **{**bare, **step}) for step in steps)
    settings = merge_fixes(step.settings for step in made)
    return replace(found, steps=made, **{"settings": settings, "notes": (), "costs": (), **fields})


def page_of(session, **options):
    """What a page that opens now gets of a session, as JSON values; `redact=True`: of a redacted one."""
    return inside.ViewModel(session.data, **options).snapshot()


def page_text(session, **options):
    """The same as the text that is sent."""
    return inside.to_page_json(page_of(session, **options))


def unpack_document(packed):
    """A document of the explorer with its lists as dicts, from what a page gets."""
    parts = ("entries", "rows", "guards")
    lists = {part: [dict(zip(packed[part][0], row, strict=True)) for row in packed[part][1]] for part in parts}
    return {**packed, **lists}
