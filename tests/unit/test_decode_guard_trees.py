"""Guard trees as torch 2.13 prints them, line by line, on the page."""

import json

import pytest

from compilediag.events import Artifact

from .session_builder import SECOND, page_of, saved
from .tables_builder import add_keys

TREE = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- DEFAULT_DEVICE: utils_device.CURRENT_DEVICE == None                           # _dynamo/output_graph.py:1122 in init_ambient_guards
| +- DictGuardManager: source=L['d'], accessed_by=FrameLocalsGuardAccessor(key='d', framelocals_idx=1), type=<class 'dict'>, tag_safe=(False, False)
| | +- KeyValueManager pair at index=1
| | | +- KeyManager: GuardManager: source=list(dict.keys(L['d']))[1], type=<class 'int'>, tag_safe=(False, False)
| | | | +- EQUALS_MATCH: list(dict.keys(L['d']))[1] == 3                               # for k in d: out += k  # exp/demo.py:5 in f
| +- GuardManager: source=G, accessed_by=GlobalsGuardAccessor, type=<class 'dict'>, tag_safe=(False, False)
| | +- GuardManager: source=G['__builtins_dict___7'], accessed_by=DictGetItemGuardAccessor('__builtins_dict___7'), type=<class 'dict'>, tag_safe=(False, False)
| | | | +- ID_MATCH: ___check_obj_id(G['__builtins_dict___7']['len'], 140432138474400), type=<class 'builtin_function_or_method'>  # return len(s)  # exp/demo.py:8 in f
| | +- TYPE_MATCH: ___check_type_id(L['k'], 140432145480928), type=<class 'int'>  # y = x * k  # exp/demo.py:5 in f (HINT: type int)
| | +- NO_TENSOR_ALIASING
+- LAMBDA_GUARD: a guard that goes on
on a line of its own

Guard latency = 110.92 us
"""  # noqa: E501 - as torch writes it

TOLD = [
    (0, "RootGuardManager", "", None),
    (1, "DEFAULT_DEVICE", "utils_device.CURRENT_DEVICE == None", None),
    (1, "DictGuardManager", "d: dict", None),
    (2, "", "KeyValueManager pair at index=1", None),
    (3, "KeyManager: GuardManager", "list(d.keys())[1]: int", None),
    (4, "EQUALS_MATCH", "list(d.keys())[1] == 3", "exp/demo.py:5"),
    (1, "GuardManager", "G: dict", None),
    (2, "GuardManager", "builtins: dict", None),
    (4, "ID_MATCH", "len is the same object (builtin_function_or_method)", "exp/demo.py:8"),
    (2, "TYPE_MATCH", "type(k) is int", "exp/demo.py:5"),
    (2, "NO_TENSOR_ALIASING", "", None),
    (0, "LAMBDA_GUARD", "a guard that goes on\non a line of its own", None),
]


def read_trees(folder, *texts):
    """(lines of each tree, how many of them are new): [depth, leaf, description, place, code] each."""
    items = [Artifact(time_ns=n * SECOND, compile_id=f"0/{n}", name="dynamo_cpp_guards_str") for n in range(len(texts))]
    session = saved(folder, *zip(map(add_keys, items), texts, strict=True))
    lines, trees = [], []
    for _, _, fresh, runs in json.loads(json.dumps(page_of(session)["rows"]["trees"])):
        lines += fresh
        trees.append(([lines[n] for first, count in runs for n in range(first, first + count)], len(fresh)))
    return trees


def test_a_tree_line_by_line(tmp_path):
    ((lines, _),) = read_trees(tmp_path, TREE)
    assert [tuple(line[:4]) for line in lines] == TOLD
    assert lines[5][4] == "for k in d: out += k"


def test_trees_share_lines_and_what_torch_counts_in_a_name_is_no_difference(tmp_path):
    other = TREE.replace("dict___7", "dict___12")
    trees = read_trees(tmp_path, TREE, TREE.replace("[1] == 3", "[1] == 4"), other)
    assert [fresh for _, fresh in trees] == [len(TOLD), 1, 0] and trees[0][0] == trees[2][0] != trees[1][0]


ADDRESSES = [f"| +- ID_MATCH: ___check_obj_id(L['act'], {address}), type=<class 'code'>" for address in (11, 22, 11)]


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (
            "| +- TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU, AutogradCPU), torch.float32, "
            "device=None, requires_grad=False, size=[4, None], stride=[8, 1])  # return x + 1  # m.py:3 in f",
            [
                "x: Tensor size=[4, None], stride=[8, 1], torch.float32, device=None, requires_grad=False, "
                "DispatchKeySet(CPU, AutogradCPU)"
            ],
        ),
        ("\n".join(ADDRESSES), [f"act is the same object (code{more})" for more in ("", " #2", "")]),
        ("| +- LAMBDA_GUARD: f at 0x7f12ab34cd56 == f at 0x7f12ab34cd57", ["f at [object] == f at [object #2]"]),
    ],
)
def test_tensors_have_their_sizes_first_and_objects_a_name_each(tmp_path, text, described):
    ((lines, _),) = read_trees(tmp_path, f"+- RootGuardManager\n{text}")
    assert [line[2] for line in lines[1:]] == described


@pytest.mark.parametrize("text", ["", "no tree at all", "+- ", "+- \ud800\0", "| | +- ?", "+- X: " + "y" * 9999])
def test_a_text_of_unknown_form_is_shown_unchanged(tmp_path, text):
    for lines, _ in read_trees(tmp_path, text):
        for depth, _, description, *_ in lines:
            assert depth <= 2 and len(description) <= 600
            assert description.rstrip(".") in text.encode("utf-8", "backslashreplace").decode()
