"""What each rule says, on the texts that torch 2.13 writes. tests/advice follows its advice."""

import pytest

from compilediag.diagnosis import diagnose
from compilediag.events import GUARD_KINDS
from tests.unit.tables_builder import changes, failure, recompile, sizes, tables

MODULE_INT = (
    "0/0: {source} == {old}  # return x * self.n  # model.py:31 in forward (HINT: torch.compile considers integer "
    "attributes of the nn.Module to be static. If you are observing recompilation, ...)"
)
GLOBAL_INT = "0/0: G['{source}'] == {old}  # return x * N  # model.py:31 in forward"
FIRST_CELL = "L['g'].__closure__[0].cell_contents"
EVALUATED = (
    "0/1: {source} == {old}  # for i in range(k):  # model.py:31 in forward "
    "(_dynamo/variables/tensor.py:2606 in evaluate_expr)"
)


def diagnose_one(*events):
    found = diagnose(tables(*events))
    assert len(found) == 1, [f.title for f in found]
    return found[0]


@pytest.mark.parametrize("kind", GUARD_KINDS)
def test_every_kind_of_guard_has_a_rule(kind):
    assert (diagnose_one(recompile("x", kind, "1", "2")).rule == "other") is (kind == "other")


def test_one_recompile_of_a_size_is_usual_and_many_are_not():
    found = diagnose_one(*sizes("4", "6"))
    assert (found.rule, found.severity, found.fix) == ("size_changes", "low", {"dynamic_sources": "L['x']"})
    assert diagnose_one(*sizes("4", "6", lost_s=60.0)).severity == "medium"
    assert diagnose_one(*sizes("4", "6", "8")).severity == "medium"


@pytest.mark.parametrize("values", [("4", "1"), ("4", "1", "0")])
def test_sizes_0_and_1_are_marked_as_unbacked(values):
    found = diagnose_one(*sizes(*values))
    assert (found.rule, found.fix) == ("size_zero_one", {"unbacked_sources": "L['x']"})
    assert "torch._dynamo.decorators.mark_unbacked(x, 0)" in found.suggestion


def test_the_lower_bound_of_a_dynamic_size_is_about_0_and_1():
    row = recompile(
        "x.size()[0]", "symbolic_shape", ">= 2", "1", reason="0/0: 2 <= x.size()[0]  # y = x  # m.py:1 in f"
    )
    assert diagnose_one(row).rule == "size_zero_one"


def test_a_guard_on_the_range_of_a_size_joins_the_guard_on_its_value():
    late = recompile("x.size()[0]", "symbolic_shape", ">= 2 and <= 9", "15", 2)
    found = diagnose_one(*sizes("4", "6"), late)
    assert (found.rule, found.fix, found.is_expected) == ("branch", {"dynamic_sources": "L['x']"}, False)
    assert found.details == ("4", "6", "15")
    assert "x.shape[0] >= 2 and <= 9" in found.suggestion


DUCK = "0/0: y.size()[0] == x.size()[0]  # duck sizing added this equality because these variables had the same size"
OF_MODULE = "0/0: tensor 'self.{attribute}' size mismatch at index 0. expected {{old}}, actual {{new}}"
OF_BUFFER = OF_MODULE.format(attribute="_buffers['b']")
OF_PARAMETER = OF_MODULE.format(attribute="_modules['lin']._parameters['bias']")
OF_CLOSURE = '0/0: g.__closure__[0].cell_contents == {old}  # y + k  # m.py:4 in <lambda> (HINT: guard on "k")'
CACHE = "return self.lin(x) + cache[self.layer_idx]"


@pytest.mark.parametrize(
    ("source", "kind", "values", "columns", "rule", "fix"),
    [
        ("x.size()[0]", "tensor_size", "4 6 8 1", {}, "size_changes", {"dynamic_sources": "L['x']"}),
        (
            *("self.b.size()[1]", "tensor_size", "4 5 6", {"reason": OF_BUFFER}),
            *("module_tensor_size", {"dynamic_sources": "L['self']._buffers['b']"}),
        ),
        (
            *("self.lin.bias.size()[0]", "tensor_size", "4 8", {"reason": OF_PARAMETER}),
            *("modules_share_code", {"dynamic_sources": "L['self']._modules['lin']._parameters['bias']"}),
        ),
        ("y.size()[0], x.size()[0]", "symbolic_shape", "x.size()[0] 7", {}, "size_relation", None),
        (
            *("y.size()[0], x.size()[0]", "symbolic_shape", "x.size()[0] 7", {"reason": DUCK}),
            *("duck_sizing", {"use_duck_shape": False}),
        ),
        (
            *("self.step", "value", "0 1 2 3", {"reason": MODULE_INT}),
            *("counter", {"dynamic_sources": "L['self'].step"}),
        ),
        ("self.n", "value", "3 1 2", {"reason": MODULE_INT}, "module_int", {"dynamic_sources": "L['self'].n"}),
        (
            *("self.d[('a',1)]", "value", "3 1 2", {"reason": MODULE_INT}),
            *("module_int", {"allow_unspec_int_on_nn_module": True}),
        ),
        ("N", "value", "3 1 2", {"reason": GLOBAL_INT}, "global_int", {"dynamic_sources": "G['N']"}),
        ("k", "value", "3 5", {}, "int_changes", {"dynamic_sources": "L['k']"}),
        ("k", "value", "3 9 5", {}, "int_changes", {"dynamic_sources": "L['k']"}),
        ("k", "value", "3 5 9 30", {}, "int_changes", {"dynamic_sources": "L['k']"}),
        ("k", "value", "3 5 7 9", {}, "counter", {"dynamic_sources": "L['k']"}),
        ("k", "value", "1 3 2", {}, "int_changes", {"dynamic_sources": "L['k']"}),
        ("k", "value", "-3 9 5", {}, "int_changes", {"dynamic_sources": "L['k']"}),
        ("k", "value", "1 2", {"reason": OF_CLOSURE}, "int_changes", {"dynamic_sources": FIRST_CELL}),
        ("k", "value", "3 4 5", {"reason": EVALUATED}, "specialized", None),
        ("k", "value", "0.1 0.2 1e-05", {"user_code": "return x * k"}, "float_changes", None),
        ("k", "value", "nan inf", {"user_code": "return x * k"}, "float_changes", None),
        ("self.drop.training", "value", "True False", {}, "train_eval", None),
        ("flag", "value", "True False", {}, "flag", None),
        ("k", "value", "'a' 'b'", {}, "string_changes", None),
        ("k", "value", "None 3", {}, "optional_argument", None),
        ("k", "value", "(1,2) (2,2)", {}, "value_changes", None),
        ("k", "value", "3 'a'", {}, "value_changes", None),
        ("k", "value", "<Config> ()", {}, "value_changes", None),
        ("k", "value", "'a' \"b\"", {}, "string_changes", None),
        ("d", "value", "{0} {0,1} {0,1,2}", {}, "growing_container", None),
        ("d", "value", "{0} {1} {2}", {}, "value_changes", None),
        ("d", "value", "{<A>} {0,... {2}", {}, "value_changes", None),
        ("len(l)", "length", "2 3 4", {}, "growing_container", None),
        ("len(l)", "length", "5 2", {}, "length_changes", None),
        (
            *("self.layer_idx", "value", "0 1 2", {"reason": MODULE_INT, "user_code": CACHE}),
            *("instance_constant", None),
        ),
        (
            *("self.layer_idx", "value", "0 1 2", {"reason": MODULE_INT, "user_code": "y * 2"}),
            *("instance_constant", {"dynamic_sources": "L['self'].layer_idx"}),
        ),
        ("self.param_groups[0]['betas'][0]", "value", "0.95 0.9", {}, "optimizer_number", None),
        ("self.param_groups[0]['lr']", "value", "0.1 0.09", {}, "optimizer_number", None),
        ("len(self.state[list(self.state.keys())[0]])", "length", "0 1", {}, "optimizer_state", None),
        ("self.state['a']", "dict_keys", "absent present", {}, "optimizer_state", None),
        ("x._dynamo_dynamic_range", "symbolic_shape", "a b", {}, "size_changes", None),
        ("x._dynamo_new_in_the_future", "symbolic_shape", "absent present", {}, "size_changes", None),
        ("x.stride()[0]", "tensor_stride", "6 1", {}, "stride_changes", None),
        ("x.dim()", "tensor_rank", "2 1", {}, "rank_changes", None),
        ("x.dtype", "tensor_dtype", "torch.float32 torch.float64", {}, "dtype_changes", None),
        ("x.device", "tensor_device", "cpu cuda", {}, "device_changes", None),
        ("x.requires_grad", "requires_grad", "False True", {}, "requires_grad_changes", None),
        ("x", "dispatch_keys", "none ADInplaceOrView", {}, "dispatch_keys_change", None),
        ("x", "dispatch_keys", "none Python", {}, "dispatch_keys_change", None),
        ("x", "type", "Tensor Parameter", {}, "type_changes", None),
        ("x", "type", "Tensor go.<locals>.Mine", {}, "type_changes", None),
        ("c", "type", "C __main__.C", {}, "fresh_class", None),
        ("x, y", "alias", "different same", {}, "alias_changes", None),
        ("g", "identity", "same E.a", {}, "identity_changes", None),
        ("g", "identity", "same <lambda>", {}, "fresh_object", None),
        ("self", "dead_reference", "alive deallocated", {}, "dead_reference", None),
        ("backend", "backend", "a b", {}, "backend_changes", None),
        ("d['b']", "dict_keys", "absent present", {}, "dict_keys_change", None),
        ("o.extra", "hasattr", "absent present", {}, "hasattr_changes", None),
        ("grad_mode", "global_state", "True False", {}, "grad_mode", None),
        ("autocast(cpu)_enabled", "global_state", "unchanged changed", {}, "autocast", None),
        ("num_threads", "global_state", "2 1", {}, "num_threads", None),
        ("grad_mode num_threads", "global_state", "unchanged changed", {}, "global_state", None),
        ("something new", "global_state", "unchanged changed", {}, "global_state", None),
        ("torch.get_default_device()", "default_device", "None meta", {}, "default_device", None),
        ("torch function modes", "mode_stack", "none DeviceContext", {}, "mode_stack", None),
    ],
)
def test_each_change_has_its_rule(source, kind, values, columns, rule, fix):
    seen = tuple(values.split())
    found = diagnose_one(*changes(source, kind, *seen, **columns))
    assert (found.rule, found.fix) == (rule, fix)
    assert found.details == (seen if kind != "symbolic_shape" else found.details)
    assert found.is_expected == (rule in EXPECTED or "betas" in source)
    assert (found.cost is not None) == (rule in WITH_A_COST)
    assert all(change.code for change in found.changes) and found.changes


#: Rules about versions that are needed.
EXPECTED = {
    *("branch", "size_relation", "train_eval", "flag", "optional_argument", "identity_changes", "grad_mode"),
}
#: Rules that say what their change costs.
WITH_A_COST = {
    *("size_changes", "size_zero_one", "size_relation", "duck_sizing", "specialized", "module_tensor_size"),
    *("modules_share_code", "instance_constant", "module_int", "global_int", "int_changes", "counter"),
    *("float_changes", "optimizer_number", "optional_argument", "growing_container", "length_changes"),
    *("alias_changes", "dtype_changes", "requires_grad_changes", "stride_changes"),
}


@pytest.mark.parametrize(
    ("setting", "entry"),
    [
        ("L['x']", "L['x']"),
        ("L['y'], L['x']:0", "L['x']:0"),
        ("L\\['x.*'\\]", "L\\['x.*'\\]"),
        ("L['x']:1", None),
        ("L['y'],[", None),
        ("(L|L|L)*\\(", None),
        ("L.*.*.*.*x", None),
        (None, None),
    ],
)
def test_a_size_that_a_setting_keeps_static(setting, entry):
    """As torch reads the setting: names or patterns, of which `:0` restricts one to a dimension."""
    data = tables(*sizes("4", "6", "8", tensor="x"))
    data.meta = {"static_sources": setting}
    (found,) = diagnose(data)
    assert found.rule == ("specialized" if entry else "size_changes")
    assert entry is None or f'"{entry}"' in found.suggestion


@pytest.mark.parametrize(
    ("tensor", "function"), [("___stack0", "forward"), ("y", "torch_dynamo_resume_in_forward_at_33")]
)
def test_a_value_from_before_a_graph_break_is_named_by_torch_and_not_marked(tensor, function):
    found = diagnose_one(*sizes("4", "6", "8", tensor=tensor, function=function))
    assert "mark_dynamic" not in found.suggestion


def test_a_number_that_a_guard_beside_needs_is_specialized():
    beside = failure("k", "value", 2, entry=7, expected="4", guard=EVALUATED.format(source="L['k']", old="4"))
    assert diagnose_one(*changes("k", "value", "3", "4", "5"), beside).rule == "specialized"


@pytest.mark.parametrize(
    ("code", "is_calculated_with"),
    [
        ("return x * k", True),
        ("y = torch.relu(x * k)", True),
        ("return F.dropout(x, k)", False),
        ("return F.dropout(x, 1 - k)", False),
        ("return torch.full((3,), fill_value=k)", False),
        ("return x[:k] * k", False),
        ("return cache[k]", False),
        ("if k > 0:", False),
        ("return x.view(k * 2, -1)", False),
        ("k", False),
        ("return (x", False),
        (None, False),
    ],
)
def test_a_float_is_passed_as_a_tensor_only_where_it_is_calculated_with(code, is_calculated_with):
    found = diagnose_one(*changes("k", "value", "0.1", "0.2", "1e-05", user_code=code))
    assert ("torch.tensor(k)" in (found.changes[0].code or "")) is is_calculated_with
    assert ("torch.tensor" in found.suggestion) is is_calculated_with


def test_the_length_of_a_loop_is_a_number_of_the_graph():
    assert diagnose_one(*changes("k", "value", "3", "4", "9", user_code="for i in range(k):")).rule == "specialized"


def test_another_object_that_looks_the_same_was_probably_created_again():
    rows = [recompile("g", "identity", "the same object", "Config object (another object)", n) for n in (1, 2)]
    assert diagnose_one(*rows).rule == "fresh_object"


def test_integers_that_change_together_are_fixed_together():
    rows = changes("s[0]", "value", "2", "3", reason="0/0: s[0] == {old}  # x.reshape(s)  # m.py:3 in f")
    guard = "L['s'][1] == 6  # x.reshape(s)  # m.py:3 in f"
    first, second = diagnose(tables(*rows, failure("s[1]", "value", 1, expected="6", actual="4", guard=guard)))
    assert first.fix == {"dynamic_sources": "L['s'][0],L['s'][1]"}
    assert (second.source, second.count) == ("s[1]", 0)


def test_an_unknown_guard_gets_torchs_own_words_and_no_advice():
    found = diagnose_one(recompile(None, "other", reason="0/0: ___mystery(x) is 3\nUser stack trace: ..."))
    assert (found.rule, found.fix) == ("other", None) and "___mystery(x) is 3" in found.suggestion
    two = diagnose(tables(recompile(None, "other", reason="a"), recompile(None, "other", reason="b", number=2)))
    assert len(two) == 2


@pytest.mark.parametrize(
    ("source", "reason", "name"),
    [
        ("x.size()[0]", "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6", "L['x']"),
        ("x.size()[0]", "tensor 'L['x']' size mismatch at index 0. expected 4, actual 6", "L['x']"),
        (
            "self.b.size()[1]",
            "tensor 'self._buffers['b']' size mismatch at index 1. expected 4, actual 5",
            "L['self']._buffers['b']",
        ),
        ("d['a'].size()[0]", "tensor 'd['a']' size mismatch at index 0. expected 4, actual 6", "L['d']['a']"),
        ("N", "0/0: G['N'] == 3  # x * N  # m.py:3 in f", "G['N']"),
        ("cfg.n", "0/0: G['cfg'].n == 3  # x * N  # m.py:3 in f", "G['cfg'].n"),
        ("k", None, "L['k']"),
        ("x.size()[0]", None, "L['x']"),
        ("self.n", None, None),
        ("d['a,b']", "0/0: d['a,b'] == 3  # x  # m.py:3 in f", None),
        ("d['a']", "torch gave another text", None),
    ],
)
def test_torchs_name_of_a_source_or_none_if_it_is_not_certain(source, reason, name):
    kind = "tensor_size" if "size()" in source else "value"
    found = diagnose_one(recompile(source, kind, "3", "7", reason=reason))
    assert found.fix == (name and {"dynamic_sources": name})
