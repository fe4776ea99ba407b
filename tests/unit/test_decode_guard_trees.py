"""Guard trees as torch 2.13 prints them, line by line."""

import pytest

from compilediag.decode.guards.guard_tree_text import ObjectNames, describe_guard, parse_tree_line, split_tree

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


def test_a_tree_line_by_line():
    names = ObjectNames()
    parsed = [parse_tree_line(line, names) for line in split_tree(TREE)]
    assert [line[:4] for line in parsed] == TOLD
    assert parsed[5].code == "for k in d: out += k"


def test_what_torch_counts_in_a_name_is_no_difference():
    assert list(split_tree(TREE)) == list(split_tree(TREE.replace("dict___7", "dict___12")))


def test_of_a_tensor_the_sizes_come_first():
    text = (
        "check_tensor(L['x'], Tensor, DispatchKeySet(CPU, AutogradCPU), torch.float32, device=None, "
        "requires_grad=False, size=[4, None], stride=[8, 1])  # return x + 1  # m.py:3 in f"
    )
    details = describe_guard(text, ObjectNames())
    assert details == (
        "x: Tensor size=[4, None], stride=[8, 1], torch.float32, device=None, requires_grad=False, "
        "DispatchKeySet(CPU, AutogradCPU)"
    )


def test_an_object_keeps_its_name_and_another_gets_another():
    names = ObjectNames()
    texts = [f"___check_obj_id(L['act'], {address}), type=<class 'code'>" for address in (11, 22, 11)]
    assert [describe_guard(text, names) for text in texts] == [
        "act is the same object (code)",
        "act is the same object (code #2)",
        "act is the same object (code)",
    ]
    assert describe_guard("f at 0x7f12ab34cd56 == f at 0x7f12ab34cd57", names) == "f at [object] == f at [object #2]"


@pytest.mark.parametrize("text", ["", "no tree at all", "+- ", "+- \ud800\0", "| | +- ?", "+- X: " + "y" * 9999])
def test_a_text_of_unknown_form_is_shown_unchanged(text):
    for line in split_tree(text):
        details = parse_tree_line(line, ObjectNames())
        assert len(details.description) <= 600 and details.depth <= 2
        assert details.description.rstrip(".") in line
