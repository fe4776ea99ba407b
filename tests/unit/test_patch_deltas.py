"""What a live page gets: of what it has already only the changes."""

import json
import random
import shutil
import subprocess

import pytest

from compilediag.events import Compile, GuardFailure, Phase, Recompile
from compilediag.views import model
from compilediag.views.patches import DOCUMENTS, GROWING, PatchDeltas, find_delta
from tests.inside import ViewModel, esm, to_page_json

from .session_builder import SECOND, put, recording

APPLY = """
import {{ applyDelta }} from "file://{module}";
import {{ readFileSync }} from "node:fs";
const cases = JSON.parse(readFileSync("{cases}"));
console.log(JSON.stringify(cases.map(([old, delta]) => applyDelta(old, delta))));
"""


def apply_delta(old, delta):
    """The same as `core/deltas.js`."""
    if "=" in delta:
        return delta["="]
    if "t" in delta:
        return old[: delta["t"][0]] + delta["t"][1]
    if "l" in delta:
        made = []
        for step in delta["l"]:
            if isinstance(step, dict):
                made += step["="]
            elif isinstance(step[1], int):
                made += old[step[0] : step[0] + step[1]]
            else:
                made.append(apply_delta(old[step[0]], step[1]))
        return made
    kept = {key: value for key, value in old.items() if key not in delta.get("x", ())}
    return {**kept, **{key: apply_delta(old.get(key), change) for key, change in delta["k"].items()}}


def compile_number(number, function):
    """The events of one compile, which recompiles `function`."""
    time_ns, key = SECOND * (number + 1), f"p.{number}"
    place = {"function": function, "file": "train.py", "line": 10}
    common = {"time_ns": time_ns, "compile_id": f"0/{number}", "compile_key": key}
    guard = {"guard_source": "n", "guard_kind": "value", "expected": str(number - 1), "actual": str(number)}
    yield Compile(**common, **place, duration_s=0.05, outcome="ok", is_recompile=number > 0)
    if number:
        entry = {"closest_compile_key": f"p.{number - 1}", "closest_compile_id": f"0/{number - 1}"}
        yield Recompile(**common, **place, **guard, **entry, entries_checked=number)
        entry = {"entry_compile_key": f"p.{number - 1}", "entry_compile_id": f"0/{number - 1}"}
        yield GuardFailure(**common, **guard, **entry, guard=f"L['n'] == {number - 1}", is_first=True)
    yield from (Phase(**common, duration_s=0.01, name=f"phase{depth}", depth=depth) for depth in range(4))


@pytest.fixture
def unpaced(monkeypatch):
    """All parts are made for each patch."""
    for name in ("SLOW_INTERVAL_S", "SLOW_SHARE", "STREAMING_S"):
        monkeypatch.setattr(model, name, 0)


@pytest.mark.parametrize("per_function", [5, 1_000], ids=["many functions", "one function"])
def test_what_is_sent_for_a_compile_does_not_grow(tmp_path, unpaced, per_function):
    session, recorder, _ = recording(tmp_path)
    view, deltas = ViewModel(session.data), PatchDeltas()
    page = {}
    sizes = {}
    for number in range(402):
        put(recorder, *compile_number(number, f"f{number // per_function}"))
        if number % 100 not in (0, 1):
            continue
        session.flush()
        whole = view.patch()
        sent = json.loads(to_page_json(deltas.shorten(whole)))
        sizes[number] = len(json.dumps(sent, separators=(",", ":")))
        receive(page, sent)
        expected = json.loads(to_page_json(whole))
        assert {name: page[name] for name in GROWING if name in expected} == {
            name: expected[name] for name in GROWING if name in expected
        }
        assert all(page[DOCUMENTS][number] == document for number, document in expected["rows"][DOCUMENTS])
    recorder.close()
    # The first of each pair has the hundred compiles since the one before, the second is a single compile.
    assert sizes[401] < 1.5 * sizes[101] and sizes[401] < 8_000


def receive(page, patch):
    """What `Store.complete` in `core/store.js` does."""
    page.update({name: patch[name] for name in GROWING if name in patch})
    page.update({name: apply_delta(page[name], delta) for name, delta in patch.get("changes", {}).items()})
    documents = page.setdefault(DOCUMENTS, {})
    documents.update(patch.get("rows", {}).get(DOCUMENTS, []))
    documents.update((number, apply_delta(documents[number], delta)) for number, delta in patch.get("documents", []))


def test_after_a_snapshot_parts_are_whole(tmp_path, unpaced):
    """A snapshot has newer parts than the patches before it: a delta from those would not fit."""
    session, recorder, _ = recording(tmp_path, *compile_number(0, "f"), *compile_number(1, "f"))
    view, deltas = ViewModel(session.data), PatchDeltas()
    session.flush()
    deltas.shorten(view.patch())
    deltas.forget()
    put(recorder, *compile_number(2, "f"))
    session.flush()
    sent = deltas.shorten(view.patch())
    assert "changes" not in sent and "documents" not in sent
    assert sent["findings"] and sent["rows"][DOCUMENTS]
    recorder.close()


def make_value(random_, depth=3):
    kind = random_.randrange(7 if depth else 4)
    if kind < 2:
        return random_.choice([None, True, 0, 1, 2.5, "", "a", "\u00e9" * 150, "long " * 40])
    if kind < 4:
        return "text " * 30 + str(random_.randrange(9))
    if kind < 6:
        return [make_value(random_, depth - 1) for _ in range(random_.randrange(5))]
    return {f"k{random_.randrange(4)}": make_value(random_, depth - 1) for _ in range(4)}


def change_value(random_, value):
    """The value with something else somewhere in it."""
    if isinstance(value, list) and random_.random() < 0.9:
        changed = [change_value(random_, item) if random_.random() < 0.3 else item for item in value]
        random_.shuffle(changed) if random_.random() < 0.2 else None
        return changed[random_.randrange(2) :] + [make_value(random_, 1)] * random_.randrange(3)
    if isinstance(value, dict) and random_.random() < 0.9:
        kept = {key: item for key, item in value.items() if random_.random() < 0.9}
        return {key: change_value(random_, item) if random_.random() < 0.3 else item for key, item in kept.items()}
    return f"{value}{random_.randrange(9)}" if isinstance(value, str) else make_value(random_)


def test_a_delta_makes_the_new_value(tmp_path):
    random_ = random.Random(7)
    cases, expected = [], []
    for _ in range(400):
        old = [make_value(random_) for _ in range(6)]
        new = change_value(random_, old)
        delta = find_delta(old, new) or {"=": new}
        assert apply_delta(old, json.loads(json.dumps(delta))) == new
        cases.append([old, delta])
        expected.append(new)
    assert sum("l" in delta for _, delta in cases) > 300
    if (node := shutil.which("node")) is None:
        pytest.skip("node is not installed; tests/browser applies deltas in Chromium")
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "apply.mjs").write_text(
        APPLY.format(module=esm.STATIC / "core" / "deltas.js", cases=tmp_path / "cases.json")
    )
    ran = subprocess.run([node, "--no-warnings", str(tmp_path / "apply.mjs")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == expected
