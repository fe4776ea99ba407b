"""A report has the same rows and texts as the live page, in a fraction of the size."""

import base64
import itertools
import json
import zlib
from dataclasses import replace

from compilediag.events import Artifact, Compile, GuardFailure, Phase, Recompile
from compilediag.views.report import DETAILS, TEXT_BUDGET, fit_patch, pack_patch
from tests.inside import ViewModel, read_page_data
from tests.unit.session_builder import saved

FILE = "/home/ada/project/training/model.py"
CODE = "return torch.softmax(self.second(hidden) * self.step, dim=-1)"
HINT = "(HINT: torch.compile considers integer attributes of the nn.Module to be static. " * 4
RECOMPILES, ENTRIES = 300, 8
MAX_REPORT = 1_500_000


def make_storm(count):
    """The events of recompiles of one function, as `full` records them, with graphs and guards of real length."""
    for n in range(count):
        own = {"time_ns": n, "compile_id": f"0/{n}", "compile_key": f"2661d5e7.{n}"}
        change = {"guard_source": "self.step", "guard_kind": "value", "user_file": FILE, "user_line": 42}
        text = f"L['self'].step == {n}  # {CODE}  # {FILE}:42 in forward {HINT})"
        yield Recompile(
            **own, **change, function="forward", file=FILE, line=40, reason=text, entries_checked=n,
            entries_analyzed=min(n, ENTRIES), actual=str(n), expected=str(n - 1),
        )  # fmt: skip
        for entry in range(max(0, n - ENTRIES), n):
            key = {"entry_compile_id": f"0/{entry}", "entry_compile_key": f"2661d5e7.{entry}"}
            wanted = text.replace(f"== {n} ", f"== {entry} ")
            yield GuardFailure(**own, **change, **key, expected=str(entry), actual=str(n), is_first=True, guard=wanted)
        graph = "".join(f"x{i} = torch.nn.functional.linear(x{i - 1}, w{i}, b{i}) * {n}\n" for i in range(40))
        tree = "".join(f"+- GuardManager: source=L['self'].layers[{i}], type={i * 7919}\n" for i in range(300))
        yield Artifact(**own, name="dynamo_output_graph"), graph
        yield Artifact(**own, name="dynamo_cpp_guards_str"), f"{tree}step == {n} \N{GRINNING FACE}\n"
        yield Compile(**own, function="forward", file=FILE, line=40, trigger="dynamo", duration_s=0.1, outcome="ok")


def unpack_column(column, strings):
    if "texts" in column:
        return [strings[cell] if isinstance(cell, int) else cell for cell in column["texts"]]
    numbers = list(itertools.accumulate(column.get("numbers") or column.get("times") or ()))
    return column.get("cells") or ([number / 1000 for number in numbers] if "times" in column else numbers)


def unpack_rows(packed):
    """table -> rows; times are in ms."""
    columns = {t: [unpack_column(c, packed["strings"]) for c in listed] for t, listed in packed["tables"].items()}
    return {table: [list(cells) for cells in zip(*listed, strict=True)] for table, listed in columns.items()}


def round_times(patch):
    """The rows of a patch as JSON has them, with times in whole us."""
    rows = json.loads(json.dumps(patch["rows"]))
    for table, listed in rows.items():
        times = [at for at, column in enumerate(patch["columns"].get(table, ())) if column["type"] == "time"]
        for row in listed:
            row[:] = [round(cell * 1000) / 1000 if at in times and cell else cell for at, cell in enumerate(row)]
    return rows


def decode(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))


def read_text(texts, event_id):
    entry = texts[event_id]
    entry = texts[str(entry["same"])] if "same" in entry else entry
    holder = texts[str(entry["in"])] if "in" in entry else entry
    text = zlib.decompress(base64.b64decode(holder["z"])).decode()
    begin, end = entry.get("slice", (0, None))
    units = text.encode("utf-16-le")
    return units[2 * begin : None if end is None else 2 * end].decode("utf-16-le")


def test_a_session_of_300_recompiles_has_a_small_report_with_every_row_and_text(tmp_path):
    session = saved(tmp_path, *make_storm(RECOMPILES))
    snapshot = ViewModel(session.data, text_budget=TEXT_BUDGET).snapshot()
    path = session.report(tmp_path / "report.html")
    assert path.stat().st_size <= MAX_REPORT
    packed = read_page_data(path)
    assert unpack_rows(packed) == round_times(snapshot)
    assert len(unpack_rows(packed)["guard_failures"]) == sum(min(n, ENTRIES) for n in range(RECOMPILES))
    assert set(packed["texts"]) == set(snapshot["texts"]) and len(packed["texts"]) == 2 * RECOMPILES
    whole = [event_id for event_id, entry in snapshot["texts"].items() if not entry.get("cut")]
    assert len(whole) > RECOMPILES
    for event_id in [*whole[:3], *whole[-3:], *whole[100:110]]:
        assert read_text(packed["texts"], event_id) == session.artifact(int(event_id))
    others = {"rows", "texts", "strings", "tables"}
    assert {k: v for k, v in packed.items() if k not in others} == {
        k: v for k, v in json.loads(json.dumps(snapshot)).items() if k not in others
    }


def test_what_does_not_fit_is_left_out_of_the_shortest_compiles(tmp_path):
    items = []
    for n, event in enumerate(item for item in make_storm(60) if not isinstance(item, tuple)):
        own = {"time_ns": event.time_ns, "compile_id": event.compile_id, "compile_key": event.compile_key}
        items.append(replace(event, duration_s=float(n % 101)) if isinstance(event, Compile) else event)
        if isinstance(event, Compile):
            items += [Phase(**own, name=f"phase {n} {m}", duration_s=0.001 * n) for m in range(10)]
    session = saved(tmp_path, *items)
    snapshot = ViewModel(session.data).snapshot()
    everything, nothing = fit_patch(snapshot), fit_patch(snapshot, 1)
    limit = (len(everything) + len(nothing)) // 2
    text = fit_patch(snapshot, limit)
    assert len(nothing) < len(text) <= limit
    everything, packed = decode(everything), decode(text)
    assert decode(nothing)["meta"]["left_out"]["compiles"] == 60
    less = packed["meta"]["left_out"]
    rows, whole = unpack_rows(packed), unpack_rows(everything)
    gone = {table: len(whole[table]) - len(rows[table]) for table in whole if len(whole[table]) > len(rows[table])}
    assert less == {"compiles": less["compiles"], "of": 60, "rows": gone} and 0 < less["compiles"] < 60
    assert set(gone) == {"phases", "guard_failures"} <= set(DETAILS)
    at = {
        name: [c["name"] for c in packed["columns"]["compiles"]].index(name) for name in ("compile_key", "duration_s")
    }
    ordered = sorted(rows["compiles"], key=lambda row: -row[at["duration_s"]])
    kept = {row[at["compile_key"]] for row in ordered[: 60 - less["compiles"]]}
    phase_key = [column["name"] for column in packed["columns"]["phases"]].index("compile_key")
    assert {row[phase_key] for row in rows["phases"]} == kept


def test_a_damaged_text_stays_as_it_is():
    texts = {"1": {"z": base64.b64encode(b"no stream").decode(), "cut": False}, "2": {"same": 1}}
    assert pack_patch({"texts": texts})["texts"] == texts
