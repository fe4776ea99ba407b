"""A report has the same rows and texts as the live page, in a fraction of the size."""

import base64
import json
import re
import zlib

from compilediag.events import Artifact, Compile, GuardFailure, Recompile
from compilediag.views.report import TEXT_BUDGET, pack_patch, render_report
from tests.inside import ViewModel
from tests.unit.session_builder import saved

FILE = "/home/ada/project/training/model.py"
CODE = "return torch.softmax(self.second(hidden) * self.step, dim=-1)"
HINT = "(HINT: torch.compile considers integer attributes of the nn.Module to be static. " * 4
RECOMPILES, ENTRIES = 300, 8
MAX_REPORT = 3_000_000


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


def read_island(page):
    return json.loads(re.search(r'id="cdiag-data">(.*?)</script>', page)[1])


def unpack_rows(patch):
    rows = json.loads(json.dumps(patch["rows"]))
    for table, columns in patch["packed"].items():
        for row in rows[table]:
            for at in columns:
                if isinstance(row[at], int):
                    row[at] = patch["strings"][row[at]]
    return rows


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
    page = render_report(snapshot)
    assert len(page.encode()) <= MAX_REPORT
    packed = read_island(page)
    assert unpack_rows(packed) == json.loads(json.dumps(snapshot["rows"]))
    assert len(packed["rows"]["guard_failures"]) == sum(min(n, ENTRIES) for n in range(RECOMPILES))
    assert set(packed["texts"]) == set(snapshot["texts"]) and len(packed["texts"]) == 2 * RECOMPILES
    whole = [event_id for event_id, entry in snapshot["texts"].items() if not entry.get("cut")]
    assert len(whole) > RECOMPILES
    for event_id in [*whole[:3], *whole[-3:], *whole[100:110]]:
        assert read_text(packed["texts"], event_id) == session.artifact(int(event_id))
    others = {"rows", "texts", "strings", "packed"}
    assert {k: v for k, v in packed.items() if k not in others} == {
        k: v for k, v in json.loads(json.dumps(snapshot)).items() if k not in others
    }


def test_only_columns_of_texts_refer_to_strings_and_single_texts_stay_in_their_cells():
    rows = {
        "t": [[1, "a long text", None, 5, [1]], [2, "a long text", "only here", "7", None], [3, "ab", None, 5, None]]
    }
    packed = pack_patch({"rows": rows})
    assert packed["strings"] == ["a long text"] and packed["packed"] == {"t": [1, 2]}
    assert packed["rows"]["t"] == [[1, 0, None, 5, [1]], [2, 0, "only here", "7", None], [3, "ab", None, 5, None]]
    assert unpack_rows(packed) == rows


def test_a_damaged_text_stays_as_it_is():
    texts = {"1": {"z": base64.b64encode(b"no stream").decode(), "cut": False}, "2": {"same": 1}}
    assert pack_patch({"texts": texts})["texts"] == texts
