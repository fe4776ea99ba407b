"""The parts of a key, and how the differences of two keys are described."""

import pytest

from compilediag.decode.cache_keys import (
    CODE_CHARS,
    MAX_ALIGNED,
    MAX_DIFFERENCES,
    MAX_LINES,
    TEXT_CHARS,
    VALUE_CHARS,
    describe_component,
    describe_differences,
    parse_components,
    split_outside_brackets,
)

#: As torch 2.13 writes the fake tensor of an input.
TENSOR = (
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([{shape}]), stride=({stride}), device=device({device}),"
    " layout=torch.strided, memory_format=None, storage_offset={offset}, storage_bytes=None, requires_grad={grad},"
    " is_quantized=False, is_conj=False, is_neg=False, is_inference=False, is_sparse=False, is_coalesced=None,"
    " dense_dim=None, sparse_dim=None)"
)


def parse(lines):
    own, settings = parse_components(lines)
    return {**own, **settings}


def tensor(shape, stride, device="type='cpu'", offset=0, grad=False):
    stride += "," * ("," not in stride)
    return TENSOR.format(shape=shape, stride=stride, device=device, offset=offset, grad=grad)


def key(**parts):
    """The components of a key; `name__i` is `name[i]`. Their digests are their texts'."""
    named = {n.replace("__", "[", 1) + "]" * ("__" in n): v for n, v in parts.items()}
    return parse(f"[{abs(hash(v)):x}] {n}: {v}" for n, v in named.items())


def compare_keys(then, now):
    return describe_differences(key(**then), key(**now))


# The parts


def test_a_component_is_name_and_text_over_many_lines():
    found = parse(["[ab12] gm: def f():\n    return 1", "[cd] inductor_config[x]: True", "no component"])
    assert found == {"gm": ("ab12", "def f():\n    return 1"), "inductor_config[x]": ("cd", "True")}


@pytest.mark.parametrize(
    ("name", "written", "text", "described"),
    [
        (
            *("example_inputs[0]", tensor("s77, 4", "4, 1", grad=True)),
            "dtype=float32; shape=[s77, 4]; stride=[4, 1]; device=cpu; requires_grad=True",
            "float32 [s77, 4], stride [4, 1], cpu, requires_grad True",
        ),
        (
            *("example_inputs[0]", tensor("3", "1", device="type='cuda', index=1", offset=8)),
            "dtype=float32; shape=[3]; stride=[1]; device=cuda:1; storage_offset=8",
            "float32 [3], stride [1], cuda:1, storage_offset 8",
        ),
        (
            *("example_inputs[0]", tensor("", ""), "dtype=float32; shape=[]; stride=[]; device=cpu"),
            "float32 [], stride [], cpu",
        ),
        ("example_inputs[1]", "('s77',)", "s77", "s77"),
        ("fx_kwargs[f]", "<function select_decomp_table at 0x7f46efde7740>", *["<function select_decomp_table>"] * 2),
    ],
)
def test_a_component_without_what_is_usual(name, written, text, described):
    found = parse([f"[a] {name}: {written}"])[name].text
    assert (found, describe_component(found)) == (text, described)


def test_the_tuple_of_autograds_configuration_has_names():
    found = key(aot_config="(2, True, False, False, False, [A(n='x, y'), B(1)], [0, 2], True, False, None)")
    assert found["aot_config[num_params_buffers]"].text == "2"
    assert found["aot_config[arg_pos_to_source]"].text == "[A(n='x, y'), B(1)]"
    assert found["aot_config[static_input_indices]"].text == "[0, 2]" and len(found) == 10
    assert key(aot_config="(2, True)")["aot_config"].text == "(2, True)", "of another torch it stays as it is"


def test_bytes_that_say_nothing_are_left_out():
    assert key(autograd_config="\x80\x02}") == {}


def test_a_text_is_split_at_its_outer_commas():
    parts = ["a", "(b, c)", "[d, {e, f}]", "{g, h}", "'i, \\', j'", "k"]
    assert split_outside_brackets(", ".join(parts)) == parts and split_outside_brackets("") == []


def test_texts_are_cut_and_stay_different():
    one, other = (key(a="x" * TEXT_CHARS + end, gm="y" * CODE_CHARS + end) for end in "ab")
    assert len(one["a"].text) <= TEXT_CHARS and len(one["gm"].text) <= CODE_CHARS
    assert one["a"].text != other["a"].text and one["gm"].text != other["gm"].text
    assert key(a="short")["a"].text == "short"


# Differences


def test_of_an_input_only_the_fields_that_differ_are_shown():
    found = compare_keys(
        {"example_inputs__0": tensor("2, 4", "4, 1")}, {"example_inputs__0": tensor("2, 4", "1, 2", grad=True)}
    )
    assert found == ["example_inputs[0] stride: [4, 1] -> [1, 2]", "example_inputs[0] requires_grad: False -> True"]


def test_an_input_that_is_no_longer_a_tensor_is_shown_whole():
    assert compare_keys({"example_inputs__0": tensor("2", "1")}, {"example_inputs__0": "('s3',)"}) == [
        "example_inputs[0]: float32 [2], stride [1], cpu -> s3"
    ]


def test_inputs_keep_their_partners_when_a_dynamic_size_came_in():
    then = {"example_inputs__0": tensor("9", "1"), "example_inputs__1": tensor("2, 4", "4, 1")}
    now = {**then, "example_inputs__1": "('s77',)", "example_inputs__2": tensor("s77, 4", "4, 1")}
    assert compare_keys(then, now) == [
        "example_inputs[1]: (absent) -> s77",
        "example_inputs[2] shape: [2, 4] -> [s77, 4]",
    ]
    assert compare_keys(now, then) == [
        "example_inputs[old 1]: s77 -> (absent)",
        "example_inputs[1] shape: [s77, 4] -> [2, 4]",
    ]


GRAPH = (
    "GraphModule()\n\n\n\ndef forward(self, x):\n    a = x + 1;  x = None\n{middle}    return (a,)\n    \n# To see more"
)


def graph(middle):
    return GRAPH.format(middle=middle)


def test_lines_that_come_and_go_leave_the_others_in_place():
    found = compare_keys({"gm": graph("")}, {"gm": graph("    b = a * 2\n")})
    assert found == ["graph line 3: (absent) -> b = a * 2"]
    assert compare_keys({"gm": graph("    b = a * 2\n")}, {"gm": graph("")}) == ["graph line 3: b = a * 2 -> (absent)"]


def test_of_many_lines_the_rest_is_counted():
    old, new = ("".join(f"    b{n} = {v} * {n}\n" for n in range(MAX_LINES + 3)) for v in ("x", "y"))
    found = compare_keys({"gm": graph(old)}, {"gm": graph(new)})
    assert len(found) == MAX_LINES + 1 and found[-1] == f"graph: 3 more of {MAX_LINES + 6} lines differ"


def test_long_graphs_are_compared_line_for_line():
    old = "".join(f"    b{n} = {n}\n" for n in range(MAX_ALIGNED))
    assert compare_keys({"gm": graph(old)}, {"gm": graph(old.replace("b700 = 700", "b700 = 7"))}) == [
        "graph line 703: b700 = 700 -> b700 = 7"
    ]


def test_a_graph_that_was_cut_before_it_differs_says_so():
    long = graph("    b = a\n" * (CODE_CHARS // 10))
    [found] = compare_keys({"gm": long}, {"gm": long + "end"})
    assert "later lines are not stored" in found or "characters" in found


def test_constants_are_shown_if_the_graph_has_the_same_code_and_another_digest():
    then, now = (
        {**parse([f"[{n}] gm: def f(): c"]), **key(constant__c=f"[{n}.0]", constant__d="[5.0]")} for n in (1, 2)
    )
    assert describe_differences(then, now) == ["constant[c]: [1.0] -> [2.0]"]
    [of_large] = describe_differences({"gm": then["gm"]}, {"gm": now["gm"]})
    assert of_large == "graph: same code, other constants"


def test_constants_played_no_part_where_the_graph_is_the_same():
    same = parse(["[1] gm: def f(): c"])
    assert describe_differences({**same, **key(constant__c="[1.0]")}, {**same, **key(constant__c="[2.0]")}) == []


def test_the_digest_is_the_truth():
    assert describe_differences(parse(["[1] p: at x"]), parse(["[1] p: at y"])) == []
    assert describe_differences(parse(["[1] p: x"]), parse(["[2] p: x"])) == ["p: same text, other content"]


def test_causes_come_before_what_follows_from_them():
    then = {"gm": graph("a\n"), "constant__c": "[1]", "example_inputs__0": tensor("2", "1"), "inductor_config__x": "1"}
    now = {"gm": graph("b\n"), "constant__c": "[2]", "example_inputs__0": tensor("3", "1"), "inductor_config__x": "2"}
    heads = [
        text.split()[0].split("[")[0]
        for text in compare_keys({**then, "grad_enabled": "1"}, {**now, "grad_enabled": "0"})
    ]
    assert heads == ["grad_enabled:", "inductor_config", "example_inputs", "constant", "graph"]


def test_many_differences_are_counted_and_long_values_cut():
    then, now = ({f"a{n}": f"{v}{n}" for n in range(MAX_DIFFERENCES + 5)} for v in "xy")
    assert compare_keys(then, now)[-1] == "and 5 more" and len(compare_keys(then, now)) == MAX_DIFFERENCES + 1
    [long] = compare_keys({"a": "x" * 500 + "1" + "z" * 300}, {"a": "x" * 500 + "2" + "z" * 300})
    assert "1zz" in long and "2zz" in long and len(long) < 2 * VALUE_CHARS + 40
