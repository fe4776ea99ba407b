"""Every form of torch's guard texts, and any other text: a log of recompiles in, the columns of the session out."""

import importlib.util
import json
import random
import re
from pathlib import Path

import pytest

from compilediag.decode.guards.path import format_expression, format_source
from compilediag.events import GUARD_KINDS

from .log_builder import GOLDEN, compile_, metrics, read_log, reasons, record, start

#: [text, kind, source, expected, actual]; the texts are torch's, from guards.py, guards.cpp and symbolic_shapes.py.
FORMS = json.loads((GOLDEN.parent / "guards.json").read_text())
VALUES = ["guard_kind", "guard_source", "expected", "actual"]
PLACE = ["user_file", "user_line", "user_code"]


def recompile(number, *texts, guards=None, name="0/0: "):
    """The records of a recompile: what failed in each entry, and the guards of the new one."""
    same = {"at": 2 * number, "compile_id": f"0/{number}"}
    printed = [] if guards is None else [record("dynamo_cpp_guards_str", {}, guards, **same)]
    return "".join([start(**same), reasons([name + t for t in texts], **same), *printed, metrics(**same)])


def read_reasons(folder, *texts, **options):
    """The rows of `recompiles` of a function that is compiled again for each of these reasons, without pandas' NA."""
    log = "".join(recompile(number, text, **options) for number, text in enumerate(texts, 1))
    rows = read_log(folder, compile_() + log).recompiles
    return rows.astype(object).where(rows.notna(), None)


def read_one(folder, text, **options):
    (row,) = read_reasons(folder, text, **options).to_dict("records")
    return row


def test_every_form_is_read(tmp_path):
    rows = read_reasons(tmp_path, *(form[0] for form in FORMS))
    assert rows[VALUES].values.tolist() == [form[1:] for form in FORMS]
    assert rows["reason"].tolist() == [f"0/0: {form[0]}" for form in FORMS]


def test_every_kind_of_guard_has_a_form():
    assert {form[1] for form in FORMS} == set(GUARD_KINDS) - {"other"}


def test_unknown_text_is_kept_as_other(tmp_path):
    texts = ["Unexpected recompilation: runtime guards failed even though", "?", "x.y"]
    rows = read_reasons(tmp_path, *texts)
    assert rows["guard_kind"].tolist() == ["other"] * 3 and rows["guard_source"].isna().all()
    assert rows["reason"].tolist() == [f"0/0: {text}" for text in texts]


@pytest.mark.parametrize("prefix", ["", "0/0: ", "12/3_1: ", "[0/1]: ", "!2/0/1: ", "- 0/0: "])
def test_compile_id_before_the_text_is_dropped(tmp_path, prefix):
    row = read_one(tmp_path, "tensor 'x' size mismatch at index 0. expected 2, actual 3", name=prefix)
    assert [row[name] for name in VALUES[1:]] == ["x.size()[0]", "2", "3"]


BRANCH = "if x.size(0) < 10:  # m.py:5 in f"
HINT = "(user code shown is first use of this value--the guard itself is not due user code)"
STACK = """0/1: tensor 'x' rank mismatch. expected 2, actual 3
User stack trace:
  File "/home/u/train.py", line 3, in main
    step(x)
  File "/home/u/my model.py", line 44, in forward
    return self.lin(x)
  File "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return y"""
FROZEN = """0/0: G['os'].environ._data[b'FLAG'] == b'0'  #   # <frozen os>:761 in decode
User stack trace:
  File "/home/ada/model.py", line 7, in f
    if os.environ["FLAG"]:
  File "<frozen os>", line 761, in decode"""


@pytest.mark.parametrize(
    ("text", "source", "expected", "place"),
    [
        (
            "L['k'] == 1                    # y = x + k  # note  # src/g.py:7 in forward (HINT: type int)",
            *("k", "1", ["src/g.py", 7, "y = x + k  # note"]),
        ),
        (
            f"2 <= L['x'].size()[0] <= 9  # {BRANCH} {HINT} and {BRANCH} (x/y.py:77 in z)",
            *("x.size()[0]", ">= 2 and <= 9", ["m.py", 5, "if x.size(0) < 10:"]),
        ),
        (
            "L['y'].size()[0] == L['x'].size()[0]  # duck sizing added this equality because these variables had it",
            *("y.size()[0], x.size()[0]", "y.size()[0] == x.size()[0]", [None] * 3),
        ),
        (STACK, "x.dim()", "2", ["/home/u/my model.py", 44, "return self.lin(x)"]),
        (FROZEN, "os.environ['FLAG']", "b'0'", ["/home/ada/model.py", 7, 'if os.environ["FLAG"]:']),
        (
            "utils_device.CURRENT_DEVICE == None    # _dynamo/output_graph.py:1122 in init_ambient_guards",
            *("torch.get_default_device()", "None", [None] * 3),
        ),
        (
            "L['fn'].__closure__[0].cell_contents.n == 2    # return x * s  # f.py:3 in g (HINT: guard on \"s\".n)",
            *("s.n", "2", ["f.py", 3, "return x * s"]),
        ),
    ],
    ids=["comment", "range", "duck sizing", "stack", "python's own code", "dynamo's own line", "closure"],
)
def test_the_users_line_and_name_come_with_the_text(tmp_path, text, source, expected, place):
    row = read_one(tmp_path, text, name="")
    assert [row[name] for name in (*VALUES[1:3], *PLACE)] == [source, expected, *place]


def test_expected_is_bounded(tmp_path):
    row = read_one(tmp_path, f"list(dict.keys(L['d'])) == {list(range(2000))}")
    assert len(row["expected"]) == 200 and len(row["reason"]) == 4_000 and "characters" in row["reason"]


def mutate(rng, text):
    pieces = "()[]'\"{}<>=,.: #\n\\%-_abcLG019\u2028\ud800é"
    characters = list(text)
    for _ in range(rng.randint(1, 12)):
        where = rng.randrange(len(characters) + 1)
        action = rng.random()
        if action < 0.4:
            characters.insert(where, rng.choice(pieces))
        elif action < 0.7:
            del characters[where : where + rng.randint(1, 20)]
        else:
            characters[where:where] = characters[: rng.randint(0, 60)]
    return "".join(characters)


LONG = ["(", "[", "'", "L['", "((", ".a", " == ", "a.b(", "# ", "  # f.py:1 in g", "tensor '"]


def test_no_text_costs_its_row_or_long(tmp_path):
    """A long text is read in linear time, see benchmarks/functions.py; quadratic time would be minutes."""
    rng = random.Random(20240607)
    suffixes = ["", "   # y = x  # f.py:3 in g", '\nUser stack trace:\n  File "a", line 3, in f\n    x', " (HINT: a"]
    texts = [mutate(rng, rng.choice(FORMS)[0] + rng.choice(suffixes)) for _ in range(400)]
    rows = read_reasons(tmp_path, *texts, *(piece * 20_000 for piece in LONG))
    assert len(rows) == len(texts) + len(LONG) and set(rows["guard_kind"]) <= set(GUARD_KINDS)


def find_functions_in_sources():
    """The functions of its own that the installed torch writes into the names of sources, as it writes them."""
    spec = importlib.util.find_spec("torch")
    text = (Path(spec.origin).parent / "_dynamo" / "source.py").read_text()
    text = text.replace("{_esc_str(self.device.type)}", "cuda").replace("{_esc_str(self.device.index)}", "0")
    found = re.findall(r"___\w+\((?:[^\"()]|\([^\"()]*\))*\)", re.sub(r"\{_esc_str\((?:[^()]|\(\))*\)\}", "0", text))
    return sorted({one.replace("{{0}}", "{0}").replace("{0}", "L['x']") for one in found})


def test_no_function_of_dynamo_is_in_the_name_of_a_value(tmp_path):
    sources = read_reasons(tmp_path, *(f"{one}.a[1] == 3" for one in find_functions_in_sources()))["guard_source"]
    assert len(sources) > 3
    assert [one for one in sources if "___" in one or "L[" in one or not one.endswith(".a[1]")] == []


HOOKS = "L['self']._modules['0']._forward_hooks[list(dict.keys(L['self']._modules['0']._forward_hooks))[{}]]"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (f"{HOOKS.format(0)}.__self__.outputs", "self[0].<forward hook>.outputs"),
        (f"len({HOOKS.format(1)}.__self__.outputs)", "len(self[0].<forward hook 2>.outputs)"),
        (f"{HOOKS.format(0)}.__closure__[0].cell_contents", "self[0].<forward hook>.__closure__[0].cell_contents"),
        (f"{HOOKS.format(0)}.__self__.last.size()[0]", "self[0].<forward hook>.last.shape[0]"),
        ("L['f'].__self__.outputs", "f.__self__.outputs"),
    ],
)
def test_a_hook_is_shown_by_its_kind(source, shown):
    text = format_source(source)
    assert format_expression(text) == format_expression(format_expression(text)) == shown


def print_guards(*codes):
    return "\n".join(("+- RootGuardManager", *(f"| +- LAMBDA_GUARD: {code}" for code in codes)))


@pytest.mark.parametrize(
    ("reason", "guards", "actual"),
    [
        ("L['n'] == 1", ["L['n'] == 2.5", "L['x'].size()[0] == 7"], "2.5"),
        ("L['x'].size()[0] <= 4", ["L['n'] == 2", "L['x'].size()[0] == 7"], "7"),
        ("L['n'] == 1", ["L['n'] == ___as_tensor(L['n']).item()"], None),
        ("L['x'].size()[0] <= 4", ["5 <= L['x'].size()[0]", "L['x'].size()[0] == L['y'].size()[0]"], None),
        ("L['k'] == 1", ["L['n'] == 2"], None),
    ],
)
def test_the_value_that_a_guard_met_is_the_one_that_the_new_entry_needs(tmp_path, reason, guards, actual):
    assert read_one(tmp_path, reason, guards=print_guards(*guards))["actual"] == actual


def test_the_comment_of_the_closest_entry_is_not_repeated_for_others_that_have_the_same(tmp_path):
    comment = "                  # return x * self.n  # model.py:7 in forward (HINT: type int)"
    endings = ["  # return self.n  # model.py:9 in forward", comment, comment]
    texts = [f"0/{number}: L['self'].n == {number}{ending}" for number, ending in enumerate(endings)]
    log = compile_() + "".join(compile_(f"0/{n}", at=2 * n) for n in (1, 2)) + recompile(3, *texts[::-1], name="")
    assert read_log(tmp_path, log).guard_failures["guard"].tolist() == [
        f"0/2: L['self'].n == 2{comment}",
        "0/1: L['self'].n == 1",
        "0/0: L['self'].n == 0  # return self.n  # model.py:9 in forward",
    ]
