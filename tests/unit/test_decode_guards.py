"""Every form of torch's guard texts, and any other text."""

from __future__ import annotations

import importlib.util
import random
import re
from pathlib import Path

import pytest

from compilediag.decode.guards import path as paths
from compilediag.decode.guards.guard_text import parse_guard
from compilediag.decode.guards.path import format_expression, format_source, name_any_instance
from compilediag.events import GUARD_KINDS

KEYS = "DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)"
CHECK = f"check_tensor(L['x'], Tensor, {KEYS}, torch.float32, device=None, requires_grad=False, size=[2], stride=[1])"

#: (text, kind, source, expected, actual); the texts are torch's, from guards.py, guards.cpp and symbolic_shapes.py.
FORMS = [
    # what C++ says of tensors
    ("tensor 'L['x']' size mismatch at index 0. expected 2, actual 3", "tensor_size", "x.size()[0]", "2", "3"),
    ("tensor 'x' stride mismatch at index 1. expected 4, actual 1", "tensor_stride", "x.stride()[1]", "4", "1"),
    ("tensor 'L['x']' rank mismatch. expected 2, actual 3", "tensor_rank", "x.dim()", "2", "3"),
    (
        "tensor 'L['x']' dtype mismatch. expected Float, actual BFloat16",
        "tensor_dtype",
        "x.dtype",
        "torch.float32",
        "torch.bfloat16",
    ),
    (
        "tensor 'L['x']' dtype mismatch. expected Float8_e4m3fn, actual Long",
        "tensor_dtype",
        "x.dtype",
        "torch.float8_e4m3fn",
        "torch.int64",
    ),
    (
        "tensor 'L['x']' Tensor device index mismatch. Expected device index to be 0, actual 1",
        "tensor_device",
        "x.device",
        "device index 0",
        "device index 1",
    ),
    (
        f"tensor 'L['x']' dispatch key set mismatch. expected {KEYS}, actual {KEYS.replace('CPU', 'CUDA')}",
        "tensor_device",
        "x.device",
        "cpu",
        "cuda",
    ),
    (
        f"tensor 'L['x']' dispatch key set mismatch. expected {KEYS}, actual DispatchKeySet(CPU, BackendSelect)",
        "dispatch_keys",
        "x",
        "ADInplaceOrView, AutogradCPU",
        "without ADInplaceOrView, AutogradCPU",
    ),
    (
        "tensor 'L['x']' requires_grad mismatch. expected requires_grad=1",
        "requires_grad",
        "x.requires_grad",
        "True",
        "False",
    ),
    (
        "tensor 'L['self']._parameters['w']' size mismatch at index 0. expected 2, actual 3. Guard failed on a "
        "parameter, consider using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on "
        "parameters.",
        "tensor_size",
        "self.w.size()[0]",
        "2",
        "3",
    ),
    (
        "expected type of 'L['x']' to be <class 'torch.Tensor'>, but found <class 'my.Sub'>",
        "type",
        "x",
        "Tensor",
        "Sub",
    ),
    (
        "expected type of 'L['x']' to be a tensor type, ' but found <class 'NoneType'>",
        "type",
        "x",
        "a tensor",
        "NoneType",
    ),
    (CHECK, "tensor_size", "x", CHECK.partition(", ")[2][:-1], None),
    ("tensor has too few dimensions", "tensor_rank", None, None, None),
    ("not a tensorL['x']", "type", "x", "a tensor", None),
    # one value
    ("___check_type_id(L['s'].names, 139769), type=<class 'list'>", "type", "s.names", "list", None),
    ("___check_type_id(L['m'], 1), type=<class '__main__.f.<locals>.M'>", "type", "m", "M", None),
    ("___check_fake_script_type(L['m'], 1), type=<class 'a.M'>", "type", "m", "M", None),
    ("TYPE_MISMATCH(L['d'])", "type", "d", None, None),
    (
        "___check_obj_id(L['fn'], 7), type=<class 'builtin_function_or_method'>",
        "identity",
        "fn",
        "the same object (type builtin_function_or_method)",
        None,
    ),
    ("___check_obj_id(L['fn'].__code__, 7), type=<class 'code'>", "identity", "fn", "the same function", None),
    ("___check_obj_id(L['m'], 7)", "identity", "m", "the same object", None),
    ("L['k'] == 1", "value", "k", "1", None),
    ("L['k'] == 'a <= b  # c'", "value", "k", "'a <= b  # c'", None),
    ("self.training == True", "value", "self.training", "True", None),
    ("L['x'] is None", "value", "x", "None", None),
    ("L['x'] is not None", "value", "x", "not None", "None"),
    ("(type(L['f']) is float and __math_isnan(L['f']))", "value", "f", "nan", None),
    ("(type(L['f']) is complex and __numpy_isnan(L['f']))", "value", "f", "nan", None),
    ("int(L['k']) == 5", "value", "k", "5", None),
    ("___dict_version(L['d']) == 12", "value", "d", "unchanged since (version 12)", None),
    ("___normalize_range_iter(L['r']) == (0, 3, 1)", "value", "r", "(0, 3, 1)", None),
    ("___normalize_count_iter(L['r']) == (0, 1)", "value", "r", "(0, 1)", None),
    ("set.__contains__(L['s'], 'a')", "value", "s", "contains 'a'", "without 'a'"),
    ("not set.__contains__(L['s'], 'a')", "value", "s", "without 'a'", "contains 'a'"),
    (
        "___check_metadata_140_c0/0",
        "value",
        None,
        "the same tensor subclass metadata",
        "other metadata",
    ),
    ("__dtensor_spec_140", "value", None, "the same DTensor spec", "another spec"),
    ("___check_opaque_guard_fn_140_c0/0", "value", None, "the same values of its guard_fn", "other values"),
    # containers and attributes
    ("len(L['self'].names) == 2", "length", "len(self.names)", "2", None),
    ("len(L['d']) != 2", "length", "len(d)", "2", None),
    ("not L['names']", "length", "len(names)", "0", None),
    ("___tuple_iterator_len(L['it']) == 2", "length", "len(it)", "2", None),
    ("IndexError on L['l'][2]", "length", "l[2]", "present", "missing"),
    ("IndexError TupleIteratorGetItemAccessor(1)", "length", None, "present", "missing"),
    ("list(L['d'].keys()) == ['a', 'b']", "dict_keys", "d.keys()", "['a', 'b']", None),
    ("list(dict.keys(L['d'])) == ['a']", "dict_keys", "d.keys()", "['a']", None),
    ("list(dict.keys(L['s'].d))[1] == 'k'", "dict_keys", "list(s.d.keys())[1]", "'k'", None),
    ("__check_obj_id(list(dict.keys(L['d']))[0], 7)", "dict_keys", "list(d.keys())[0]", "the same object", None),
    ("___dict_contains('k', L['d'])", "dict_keys", "d['k']", "present", "absent"),
    ("not ___dict_contains('k', G['sys'].modules)", "dict_keys", "sys.modules['k']", "absent", "present"),
    ("KeyError on L['d']['k']", "dict_keys", "d['k']", "present", "missing"),
    ("not ___dict_contains('forward', L['m']._modules['l'].__dict__)", "hasattr", "m.l.forward", "absent", "present"),
    ("not hasattr(L['x'], 'extra')", "hasattr", "x.extra", "absent", "present"),
    ("hasattr(L['x'], 'extra')", "hasattr", "x.extra", "present", "absent"),
    ("getattr failed on source L['x'].extra", "hasattr", "x.extra", "present", "missing"),
    ("CodeGuardAccessor: Not a function on L['fn'].__code__", "type", "fn", "a Python function", None),
    ("null type dict on TypeDictGuardAccessor", "type", None, None, None),
    # several values
    ("L['y'] is L['x']", "alias", "y", "the same object as x", "another object"),
    ("Duplicate tensors found: [\"L['x']\", \"L['y']\"]", "alias", "x, y", "different tensors", "the same tensor"),
    (
        "Duplicate tensor found where not expected! L['x']should not alias to anything, but is aliased",
        "alias",
        "x",
        "different tensors",
        "the same tensor",
    ),
    ("Duplicate tensors found: ['x', 'y']", "alias", "x, y", "different tensors", "the same tensor"),
    ("Duplicate tensor found where not expected!", "alias", None, "different tensors", "the same tensor"),
    ("check_no_aliasing(L['x'], L['y'])", "alias", "x, y", "different tensors", "the same tensor"),
    (
        "check_overlapping(overlapping=[L['x'], L['y']], non_overlapping=[L['z']])",
        "alias",
        "x, y, z",
        "overlapping storage: x, y",
        None,
    ),
    # shapes
    ("2 <= L['x'].size()[0]", "symbolic_shape", "x.size()[0]", ">= 2", None),
    ("2 <= L['x'].size()[0] <= 9", "symbolic_shape", "x.size()[0]", ">= 2 and <= 9", None),
    ("L['x'].size()[0] <= 9", "symbolic_shape", "x.size()[0]", "<= 9", None),
    ("Ne(L['x'].size()[0], 5)", "symbolic_shape", "x.size()[0]", "!= 5", None),
    ("Eq(L['x'].size()[0], 5)", "symbolic_shape", "x.size()[0]", "5", None),
    ("L['x'].size()[0] == 5", "symbolic_shape", "x.size()[0]", "5", None),
    (
        "L['x'].size()[0] == L['y'].size()[1]",
        "symbolic_shape",
        "x.size()[0], y.size()[1]",
        "x.size()[0] == y.size()[1]",
        None,
    ),
    ("L['x'].stride()[0] % 8 == 0", "symbolic_shape", "x.stride()[0]", "x.stride()[0] % 8 == 0", None),
    ("L['n'] < 10", "symbolic_shape", "n", "< 10", None),
    ("n < 10", "symbolic_shape", "n", "< 10", None),
    ("not (L['x'].size()[0] > 3)", "symbolic_shape", "x.size()[0]", "not (x.size()[0] > 3)", None),
    ('"Shape guard failed with values: 3,4"', "symbolic_shape", None, None, "3,4"),
    ("Non integer found!", "symbolic_shape", None, None, None),
    ("symbolic values found", "symbolic_shape", None, None, None),
    (
        "hasattr(L['x'], '_dynamo_dynamic_indices') == False",
        "symbolic_shape",
        "x._dynamo_dynamic_indices",
        "absent",
        "present",
    ),
    (
        "((getattr(L['x'], '_dynamo_dynamic_indices', set()).issubset({0})) if hasattr(L['x'], "
        "'_dynamo_dynamic_indices') else True)",
        "symbolic_shape",
        "x._dynamo_dynamic_indices",
        "within {0}",
        None,
    ),
    (
        "((L['x']._dynamo_dynamic_indices.issubset({0})) if hasattr(L['x'], '_dynamo_dynamic_indices') else True)",
        "symbolic_shape",
        "x._dynamo_dynamic_indices",
        "within {0}",
        None,
    ),
    (
        "_dynamo_dynamic_indices not a subset: runtime {0, 1} is not a subset of compiled {0}",
        "symbolic_shape",
        None,
        "_dynamo_dynamic_indices within {0}",
        "{0, 1}",
    ),
    (
        "_dynamo_static_indices should be absent but is present on runtime tensor",
        "symbolic_shape",
        None,
        "_dynamo_static_indices absent",
        "present",
    ),
    (
        "_has_dynamo_dim_marking is present on runtime tensor but was absent at compile time",
        "symbolic_shape",
        None,
        "_has_dynamo_dim_marking absent",
        "present",
    ),
    # ambient state
    ("GLOBAL_STATE changed: grad_mode ", "global_state", "grad_mode", "unchanged", "changed"),
    ('___check_global_state() against {"grad_mode":true}', "global_state", "global state", '{"grad_mode":true}', None),
    ("torch.autograd.forward_ad._current_level == -1", "global_state", "forward AD level", "-1", None),
    (
        "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None",
        "global_state",
        "saved tensors hooks",
        "None",
        None,
    ),
    (
        "utils_device.CURRENT_DEVICE == device(type='meta')",
        "default_device",
        "torch.get_default_device()",
        "device(type='meta')",
        None,
    ),
    ("___check_torch_function_mode_stack()", "mode_stack", "torch function modes", "the same modes", None),
    (
        "torch._functorch.pyfunctorch.compare_functorch_state([])",
        "mode_stack",
        "functorch levels",
        "[]",
        None,
    ),
    (
        "L['k'].raw_repr() == DispatchKeySet(CPU).raw_repr()",
        "dispatch_keys",
        "k",
        "CPU",
        None,
    ),
    # new in torch 2.15
    ("set.__len__(L['s']) == 2", "length", "len(s)", "2", None),
    ("frozenset.__len__(L['s']) == 0", "length", "len(s)", "0", None),
    ("___list_reverseiterator_len(L['it']) == 3", "length", "len(it)", "3", None),
    ("___cow_tensor_matches(L['x'], False)", "value", "torch._C._is_cow_tensor(x)", "False", "True"),
    ("___cow_tensor_matches(L['x'], True)", "value", "torch._C._is_cow_tensor(x)", "True", "False"),
    (
        "L['s'] == ___get_current_stream(torch.device('cuda'))",
        "global_state",
        "current cuda stream",
        "s",
        "another stream",
    ),
    (
        "G['s'] != ___get_current_stream(torch.device('xpu'))",
        "global_state",
        "current xpu stream",
        "another stream",
        "s",
    ),
    (
        "((getattr(L['x'], '_dynamo_dynamic_range', None) == {_DimRange(dim=1, min=2, max=16), _DimRange(dim=0, "
        "min=None, max=8)}) if hasattr(L['x'], '_has_dynamo_dim_marking') else True)",
        "symbolic_shape",
        "x._dynamo_dynamic_range",
        "dim 0: any to 8, dim 1: 2 to 16",
        None,
    ),
    (
        "((getattr(L['x'], '_dynamo_dynamic_range', None) == None) if hasattr(L['x'], '_has_dynamo_dim_marking') "
        "else True)",
        "symbolic_shape",
        "x._dynamo_dynamic_range",
        "no range",
        None,
    ),
    (
        "_dynamo_dynamic_range mismatch: expected {_DimRange(dim=0, min=2, max=16)}",
        "symbolic_shape",
        None,
        "_dynamo_dynamic_range dim 0: 2 to 16",
        None,
    ),
    ("_dynamo_shape_ids mismatch: expected {0: 'a'}", "symbolic_shape", None, "_dynamo_shape_ids {0: 'a'}", None),
    # the entry itself
    (
        "BACKEND_MATCH failure: torch.compile detected different backend callables. Cached backend: m.f (id=0x1)."
        " New backend: m.g (id=0x2). If this is unexpected, wrap your backend in functools.partial",
        "backend",
        "backend",
        "m.f (id=0x1)",
        "m.g (id=0x2)",
    ),
    (
        "BACKEND_MATCH failure: torch.compile detected different backend callables. If this is unexpected, wrap",
        "backend",
        "backend",
        "the backend it was compiled with",
        "another backend",
    ),
    ("Cache line invalidated because L['x'] got deallocated", "dead_reference", "x", "alive", "deallocated"),
    (
        "Cache line invalidated because type(L['x']) got deallocated",
        "dead_reference",
        "type(x)",
        "alive",
        "deallocated",
    ),
    ("G['__weak_1']() is not None", "dead_reference", "__weak_1()", "not None", "None"),
    ("Not a weakref obj L['w']", "dead_reference", "w", "a weak reference", None),
]


@pytest.mark.parametrize(("text", "kind", "source", "expected", "actual"), FORMS, ids=[form[0][:60] for form in FORMS])
def test_every_form_is_parsed(text, kind, source, expected, actual):
    parsed = parse_guard(text)
    assert (parsed.kind, parsed.source, parsed.expected, parsed.actual) == (kind, source, expected, actual)
    assert parsed.text == text.strip()


def test_no_known_form_is_other_and_every_kind_is_met():
    kinds = [parse_guard(form[0]).kind for form in FORMS]
    assert kinds.count("other") == 0
    assert set(kinds) == set(GUARD_KINDS) - {"other"}


@pytest.mark.parametrize("text", ["", "   ", "Unexpected recompilation: runtime guards failed even though", "0/0: ?"])
def test_unknown_text_is_kept_as_other(text):
    parsed = parse_guard(text)
    assert (parsed.kind, parsed.source, parsed.text) == ("other", None, text.strip())


@pytest.mark.parametrize("prefix", ["", "0/0: ", "12/3_1: ", "[0/1]: ", "!2/0/1: ", "- 0/0: "])
def test_compile_id_before_the_text_is_dropped(prefix):
    parsed = parse_guard(prefix + "tensor 'x' size mismatch at index 0. expected 2, actual 3")
    assert (parsed.source, parsed.expected, parsed.actual) == ("x.size()[0]", "2", "3")


def test_user_line_comes_from_the_comment():
    parsed = parse_guard("L['k'] == 1                    # y = x + k  # note  # src/g.py:7 in forward (HINT: type int)")
    assert (parsed.user_file, parsed.user_line, parsed.user_code) == ("src/g.py", 7, "y = x + k  # note")
    assert (parsed.source, parsed.expected) == ("k", "1")


def test_user_line_of_a_range_guard_is_its_first_place():
    place = "if x.size(0) < 10:  # m.py:5 in f"
    hint = "(user code shown is first use of this value--the guard itself is not due user code)"
    parsed = parse_guard(f"2 <= L['x'].size()[0] <= 9  # {place} {hint} and {place} (x/y.py:77 in z)")
    assert (parsed.user_file, parsed.user_line, parsed.user_code) == ("m.py", 5, "if x.size(0) < 10:")
    assert parsed.expected == ">= 2 and <= 9"


def test_comment_without_a_place_is_not_part_of_what_is_expected():
    duck = "duck sizing added this equality because these variables had the same size 4"
    parsed = parse_guard(f"L['y'].size()[0] == L['x'].size()[0]  # {duck}")
    assert parsed.expected == "y.size()[0] == x.size()[0]"
    assert parsed.user_file is None


def test_user_stack_gives_the_innermost_frame_outside_torch():
    parsed = parse_guard(
        "0/1: tensor 'x' rank mismatch. expected 2, actual 3\nUser stack trace:\n"
        '  File "/home/u/train.py", line 3, in main\n    step(x)\n'
        '  File "/home/u/my model.py", line 44, in forward\n    return self.lin(x)\n'
        '  File "/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return y'
    )
    place = (parsed.user_file, parsed.user_line, parsed.user_code)
    assert place == ("/home/u/my model.py", 44, "return self.lin(x)")
    assert parsed.kind == "tensor_rank"


def test_dynamos_own_line_is_nobodys_line():
    parsed = parse_guard("utils_device.CURRENT_DEVICE == None    # _dynamo/output_graph.py:1122 in init_ambient_guards")
    assert (parsed.kind, parsed.expected, parsed.user_file) == ("default_device", "None", None)


def test_closure_variable_gets_its_name_from_the_hint():
    parsed = parse_guard(
        "L['fn'].__closure__[0].cell_contents.n == 2    # return x * s  # f.py:3 in g (HINT: guard on \"s\".n)"
    )
    assert (parsed.source, parsed.expected) == ("s.n", "2")
    assert [path.torch_text for path in parsed.operands] == ["L['fn'].__closure__[0].cell_contents.n"]


@pytest.mark.parametrize(
    ("leaf", "kind"),
    [("ID_MATCH", "identity"), ("LENGTH_CHECK", "length"), ("NO_HASATTR", "hasattr"), ("NEW_GUARD", "other")],
)
def test_leaf_settles_the_kind_of_an_unknown_text(leaf, kind):
    assert parse_guard("a text of tomorrow", leaf).kind == kind


@pytest.mark.parametrize(
    ("source", "details"),
    [
        ("L['self']._modules['lin'].weight", "self.lin.weight"),
        ("L['self']._modules['layers']._modules['0']._parameters['weight']", "self.layers[0].weight"),
        ("L['self'].__dict__['n']", "self.n"),
        ("G['foo'].bar", "foo.bar"),
        ("G['__builtins_dict___3']['len']", "len"),
        ("G['__import_torch_dot_nn_dot_functional'].relu", "torch.nn.functional.relu"),
        ("dict.__getitem__(L['d'], 'k')", "d['k']"),
        ("list.__getitem__(L['l'], 0)", "l[0]"),
        ("___from_numpy(L['a'])", "a"),
        ("getattr(L['o'], 'a-b')", "getattr(o, 'a-b')"),
        ("x.size()[0]", "x.size()[0]"),
    ],
)
def test_sources_are_written_as_users_write_them(source, details):
    assert format_source(source) == details


def test_expected_and_actual_are_bounded():
    parsed = parse_guard(f"list(dict.keys(L['d'])) == {list(range(2000))}")
    assert len(parsed.expected) == 200
    assert len(parsed.text) == 4_000 and "10,917 characters" in parsed.text


def _mutated(rng: random.Random, text: str) -> str:
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


def test_no_text_makes_it_raise():
    rng = random.Random(20240607)
    suffixes = ["", "   # y = x  # f.py:3 in g", '\nUser stack trace:\n  File "a", line 3, in f\n    x', " (HINT: a"]
    for _ in range(4000):
        text = _mutated(rng, rng.choice(FORMS)[0] + rng.choice(suffixes))
        parsed = parse_guard(text, rng.choice([None, "TENSOR_MATCH", "SYMBOLIC_SHAPE_GUARD"]))
        assert parsed.kind in GUARD_KINDS
        assert parsed.text == text.strip()


@pytest.mark.parametrize(
    "piece", ["(", "[", "'", "L['", "((", ".a", " == ", "a.b(", "# ", "  # f.py:1 in g", "tensor '"]
)
def test_long_texts_are_parsed(piece):
    # In linear time, see benchmarks/functions.py; quadratic time would be minutes.
    assert parse_guard(piece * 20_000).kind in GUARD_KINDS


def find_functions_in_sources():
    """The functions of its own that the installed torch writes into the names of sources, as it writes them."""
    spec = importlib.util.find_spec("torch")
    text = (Path(spec.origin).parent / "_dynamo" / "source.py").read_text()
    text = text.replace("{_esc_str(self.device.type)}", "cuda").replace("{_esc_str(self.device.index)}", "0")
    found = re.findall(r"___\w+\((?:[^\"()]|\([^\"()]*\))*\)", re.sub(r"\{_esc_str\((?:[^()]|\(\))*\)\}", "0", text))
    return sorted({one.replace("{{0}}", "{0}").replace("{0}", "L['x']") for one in found})


@pytest.mark.parametrize("source", find_functions_in_sources())
def test_no_function_of_dynamo_is_in_the_name_of_a_value(source):
    formatted = format_source(f"{source}.a[1]")
    assert "___" not in formatted and "L[" not in formatted and formatted.endswith(".a[1]")


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("___list_reverseiterator_backing_list(L['it'])[1]", "it[1]"),
        ("___unwrap_async_collective_tensor(L['x']).size()[0]", "x.size()[0]"),
        ("___set_getitem(L['s'], 0)", "s[0]"),
        ("___namedtuple_fields(L['n'])", "n._fields"),
        ("___get_current_stream(torch.device('cuda', 0))", "torch.cuda.current_stream(0)"),
    ],
)
def test_functions_of_dynamo_in_names(source, plain):
    assert format_source(source) == plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x.size()[0]", "x.shape[0]"),
        ("d['a.size()[0]'].stride()[1]", "d['a.size()[0]'].stride(1)"),
        ("x.size()[0], y.size()[1]", "x.shape[0], y.shape[1]"),
        ("not (x.size()[0] > n)", "not (x.shape[0] > n)"),
        ("self.layers[*].w.size()[1]", "self.layers[*].w.shape[1]"),
        ("len(x.items)", "len(x.items)"),
        ("x.size()[i]", "x.size()[i]"),
        ("functorch levels", "functorch levels"),
        (">= 2 and <= 9", ">= 2 and <= 9"),
        ("L['a local named L'].size()[0]", "L['a local named L'].shape[0]"),
    ],
)
def test_what_people_see_is_python(text, shown):
    assert format_expression(text) == shown


@pytest.mark.parametrize(
    ("source", "owner", "subject", "found", "dim"),
    [
        ("x.size()[12]", "x", "x", "size", 12),
        ("self.w.stride()[0]", "self.w", "self.w", "stride", 0),
        ("x.dim()", "x", "x", "dim", None),
        ("x.dtype", "x", "x", "dtype", None),
        ("self.size", "self.size", "self.size", None, None),
        ("x.storage_offset()", "x.storage_offset()", "x.storage_offset()", None, None),
        ("len(d['a'])", "len(d['a'])", "d['a']", None, None),
        ("x.size()[0], y", "x.size()[0], y", "x.size()[0], y", None, None),
    ],
)
def test_a_value_knows_what_it_is_of(source, owner, subject, found, dim):
    path = paths.Path.of(source)
    assert (path.text, path.owner.text, path.subject.text) == (source, owner, subject)
    assert (path.tensor_property, path.dim, path.is_size) == (found, dim, found == "size")


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ("self.layers[3].attn.n", "self.layers[*].attn.n"),
        ("self.layers[3].w.size()[1]", "self.layers[*].w.size()[1]"),
        (
            "self.layers[3].w.size()[1], self.layers[4].w.size()[1]",
            "self.layers[*].w.size()[1], self.layers[*].w.size()[1]",
        ),
        ("targets[3]['boxes'].size()[0]", "targets[*]['boxes'].size()[0]"),
        ("args[0]['ids'].size()[1]", "args[0]['ids'].size()[1]"),
        ("args[0].size()[1]", "args[0].size()[1]"),
        ("self.sizes[3]", "self.sizes[3]"),
        ("self.xs[3].size()[0]", "self.xs[3].size()[0]"),
        ("len(l)", "len(l)"),
    ],
)
def test_instances_of_a_module_are_grouped_and_inputs_are_not(source, same):
    assert name_any_instance(source) == same and name_any_instance(same) == same
