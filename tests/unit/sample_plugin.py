"""A package with plug-ins, as pip would leave it in a folder: modules and a .dist-info with entry points."""

import contextlib
import sys
from pathlib import Path

from compilediag.system import plugins

MODULE = '''
"""What a package may bring: a decoder, rules and panels."""

from compilediag.diagnosis import Finding, Rule
from compilediag.events import GraphBreak

asked = []


def decode(metadata, text, compile_id, time_ns):
    fields = metadata["sample_record"]
    yield GraphBreak(time_ns=time_ns, compile_id=compile_id, reason=f"recorded by {fields['by']}", user_line=7)
    yield "sample_text", f"the text was {text!r}"


def many_compiles(tables):
    count = len(tables.compiles)
    if count:
        fields = {"title": f"{count} compiles", "suggestion": "Compile less.", "evidence": ()}
        yield Finding(rule="many_compiles", severity="low", seconds_lost=0.0, **fields)


def by_function(tables):
    counts = tables.compiles.groupby("function", dropna=False)["duration_s"].agg(["size", "sum"]).reset_index()
    return {"columns": ["function", "compiles", "seconds"], "rows": counts.values.tolist()}


def broken(tables):
    asked.append(1)
    raise ValueError("no  such\\ntable")


odd_device = Rule(
    "odd_device",
    ("tensor_device",),
    when=lambda cause: "odd" in cause.values,
    action="Move {name} away from the odd device.",
    why="Its device {values}.",
    docs=None,
)
broken_rule = Rule("broken_rule", ("tensor_dtype",), action="{no_such_fact}")


def wrong(tables):
    return ["a finding as text"]
'''
ENTRY_POINTS = {
    "decoders": {"sample_record": "sample_plugin:decode"},
    "rules": {
        "broken": "sample_plugin:broken",
        "many_compiles": "sample_plugin:many_compiles",
        "broken_rule": "sample_plugin:broken_rule",
        "missing": "sample_plugin_that_is_not_there:rule",
        "odd_device": "sample_plugin:odd_device",
        "wrong": "sample_plugin:wrong",
    },
    "panels": {"by_function": "sample_plugin:by_function", "broken_panel": "sample_plugin:broken"},
}


def install(folder: Path) -> None:
    """Leave the package in `folder`, which has to be on the path."""
    (folder / "sample_plugin.py").write_text(MODULE)
    info = folder / "sample_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-plugin\nVersion: 1.0\n")
    groups = [
        f"[compilediag.{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in ENTRY_POINTS.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))


@contextlib.contextmanager
def on_the_path(folder, monkeypatch):
    """The package is installed in `folder` for the time of a test."""
    folder.mkdir()
    install(folder)
    monkeypatch.syspath_prepend(folder)
    plugins.list_plugins.cache_clear()
    yield folder
    plugins.list_plugins.cache_clear()
    sys.modules.pop("sample_plugin", None)
