"""What each rule says, on the texts that torch 2.13 writes. live/test_fix_configs.py tests that its fixes hold."""

import pytest

from compilediag.diagnosis import diagnose
from compilediag.diagnosis.causes.cause import get_value_type
from compilediag.diagnosis.causes.source_paths import find_torch_source, normalize_source, split_property
from compilediag.diagnosis.causes.value_uses import find_uses
from compilediag.diagnosis.rules.guards import GUARD_RULES
from compilediag.diagnosis.rules.guards_on_numbers import is_rising
from compilediag.events import GUARD_KINDS
from tests.unit.tables_builder import changes, failure, recompile, sizes, tables

MODULE_INT = (
    "0/0: {source} == {old}  # return x * self.n  # model.py:31 in forward (HINT: torch.compile considers integer "
    "attributes of the nn.Module to be static. If you are observing recompilation, ...)"
)
GLOBAL_INT = "0/0: G['{source}'] == {old}  # return x * N  # model.py:31 in forward"
EVALUATED = (
    "0/1: {source} == {old}  # for i in range(k):  # model.py:31 in forward "
    "(_dynamo/variables/tensor.py:2606 in evaluate_expr)"
)


def diagnose_one(*events):
    found = diagnose(tables(*events))
    assert len(found) == 1, [f.title for f in found]
    return found[0]


def test_every_kind_of_guard_has_a_rule():
    kinds = {kind for rule in GUARD_RULES for kind in rule.kinds}
    parts = {"equal_sizes", "mark", "relation"}  # of symbolic_shape, with sizes and values
    assert kinds - parts == set(GUARD_KINDS) - {"symbolic_shape"}
    assert len({rule.id for rule in GUARD_RULES}) == len(GUARD_RULES)


def test_one_recompile_of_a_size_is_usual():
    found = diagnose_one(*sizes("4", "6"))
    assert found.severity == "low"
    assert found.suggestion.startswith("Mark it dynamic before the call: torch._dynamo.maybe_mark_dynamic(x, 0). ")
    assert "one recompile is usual" in found.suggestion
    assert diagnose_one(*sizes("4", "6", lost_s=60.0)).severity == "medium"


def test_many_recompiles_of_a_size_have_a_likely_reason():
    found = diagnose_one(*sizes("4", "6", "8"))
    assert "probably compiled with dynamic=False" in found.suggestion


@pytest.mark.parametrize(
    ("values", "own"), [(("4", "1"), "size 1 on its own"), (("4", "1", "0"), "sizes 0 and 1 on their own")]
)
def test_marking_does_not_fix_sizes_0_and_1(values, own):
    found = diagnose_one(*sizes(*values))
    assert found.rule == "size_zero_one"
    assert own in found.suggestion
    assert found.suggestion.startswith("Pad to 2 or more")
    assert "torch._dynamo.decorators.mark_unbacked(x, 0)" in found.suggestion
    assert found.fix == {"unbacked_sources": "L['x']"}


def test_the_lower_bound_of_a_dynamic_size_is_about_0_and_1():
    row = recompile(
        "x.size()[0]", "symbolic_shape", ">= 2", "1", reason="0/0: 2 <= x.size()[0]  # y = x  # m.py:1 in f"
    )
    assert diagnose_one(row).rule == "size_zero_one"


def test_a_size_that_is_also_0_or_1_keeps_an_entry_for_it():
    found = diagnose_one(*sizes("4", "6", "8", "1"))
    assert found.rule == "size_changes"
    assert "Sizes 0 and 1 are still compiled on their own." in found.suggestion


def test_a_guard_on_the_range_of_a_size_joins_the_guard_on_its_value():
    late = recompile("x.size()[0]", "symbolic_shape", ">= 2 and <= 9", "15", 2)
    found = diagnose_one(*sizes("4", "6"), late)
    assert found.rule == "branch"
    assert found.details == ("4", "6", "15")
    assert "x.shape[0] >= 2 and <= 9" in found.suggestion
    assert found.fix is None


def test_sizes_of_module_tensors_are_static():
    rows = changes(
        "self.b.size()[1]",
        "tensor_size",
        "4",
        "5",
        "6",
        reason="0/0: tensor 'self._buffers['b']' size mismatch at index 1. expected {old}, actual {new}",
    )
    found = diagnose_one(*rows)
    assert found.rule == "module_tensor_size"
    assert found.suggestion.startswith("Let its size vary: torch.compiler.config.dynamic_sources = ")
    assert found.fix == {"dynamic_sources": "L['self']._buffers['b']"}


def test_sizes_that_no_longer_relate():
    row = recompile(
        "y.size()[0], x.size()[0]",
        "symbolic_shape",
        "x.size()[0]  # (unknown var s17, please file a bug)",
        "y.size()[0] = 7, x.size()[0] = 6",
        reason="0/1: y.size()[0] == x.size()[0]  # (unknown var s17, please file a bug)",
    )
    found = diagnose_one(row)
    assert found.rule == "size_relation"
    assert "bug" not in found.title
    assert found.fix is None


def test_duck_sizing_has_a_setting():
    reason = (
        "0/0: y.size()[0] == x.size()[0]  # duck sizing added this equality because these variables had the same size"
    )
    found = diagnose_one(recompile("y.size()[0], x.size()[0]", "symbolic_shape", "x.size()[0]", None, reason=reason))
    assert found.rule == "duck_sizing"
    assert found.fix == {"use_duck_shape": False}


@pytest.mark.parametrize(
    ("attribute", "expected", "actual", "action", "title"),
    [
        ("dynamic_range", "dim 0: 2 to 16", "dim 0: 2 to 32", "the same min= and max=", "was dim 0: 2 to 16, then dim"),
        (
            "dynamic_indices",
            "absent",
            "present",
            "mark_dynamic in the same way for x",
            "other dimensions of x, or none",
        ),
        ("static_indices", "within {0}", "{1}", "mark_static in the same way for x", "other dimensions of x, or none"),
        ("new_in_the_future", "absent", "present", "in the same way for x", "other dimensions of x, or none"),
    ],
)
def test_a_mark_names_the_function_that_sets_it(attribute, expected, actual, action, title):
    found = diagnose_one(recompile(f"x._dynamo_{attribute}", "symbolic_shape", expected, actual))
    assert action in found.suggestion
    assert title in found.title
    assert "_dynamo_" not in found.title + found.suggestion


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
    assert (entry is not None) == ("static_sources" in found.suggestion)
    assert entry is None or f'Remove "{entry}"' in found.suggestion


def test_a_value_on_the_stack_cannot_be_marked_by_name():
    found = diagnose_one(*sizes("4", "6", "8", tensor="___stack0"))
    assert "mark_dynamic(___stack0" not in found.suggestion


def test_a_size_after_a_graph_break_can_be_named_where_it_cannot_be_marked():
    found = diagnose_one(*sizes("4", "6", "8", tensor="y", function="torch_dynamo_resume_in_forward_at_33"))
    assert found.suggestion.startswith("Make it dynamic: ") and "before a graph break" in found.suggestion
    assert "torch.compiler.config.dynamic_sources = \"L['y']\"" in found.suggestion
    assert "mark_dynamic" not in found.suggestion


def test_an_integer_of_a_module_that_counts_up():
    found = diagnose_one(*changes("self.step", "value", "0", "1", "2", "3", reason=MODULE_INT))
    assert found.rule == "counter"
    assert found.suggestion.startswith("Let it vary: torch.compiler.config.dynamic_sources = ")
    assert "self.step counts up, and each value is a new compile." in found.suggestion
    assert "torch.compiler.config.dynamic_sources = \"L['self'].step\"" in found.suggestion
    assert "tensor buffer" in found.suggestion
    assert found.fix == {"dynamic_sources": "L['self'].step"}


def test_an_integer_of_a_module_that_does_not():
    found = diagnose_one(*changes("self.n", "value", "3", "1", "2", reason=MODULE_INT))
    assert found.rule == "module_int"
    unnamed = diagnose_one(*changes("self.d[('a', 1)]", "value", "3", "1", "2", reason=MODULE_INT))
    assert unnamed.fix == {"allow_unspec_int_on_nn_module": True}


def test_a_global_integer_is_never_made_dynamic():
    found = diagnose_one(*changes("N", "value", "3", "1", "2", reason=GLOBAL_INT))
    assert found.rule == "global_int"
    assert found.fix == {"dynamic_sources": "G['N']"}


def test_an_integer_argument():
    once = diagnose_one(*changes("k", "value", "3", "5"))
    assert (once.rule, once.severity) == ("int_changes", "low")
    often = diagnose_one(*changes("k", "value", "3", "9", "5"))
    assert "probably" in often.suggestion and "torch.tensor" not in often.suggestion
    assert often.fix == {"dynamic_sources": "L['k']"}


def test_an_integer_that_code_needs_as_a_number():
    found = diagnose_one(*changes("k", "value", "3", "4", "5", reason=EVALUATED))
    assert found.rule == "specialized"
    assert found.fix is None
    by_failure = diagnose_one(
        *changes("k", "value", "3", "4", "5"),
        failure("k", "value", 2, entry=7, expected="4", guard=EVALUATED.format(source="L['k']", old="4")),
    )
    assert by_failure.rule == "specialized"


def test_a_float_is_passed_as_a_tensor_only_where_it_is_calculated_with():
    found = diagnose_one(*changes("k", "value", "0.1", "0.2", "1e-05", user_code="return x * k"))
    assert found.rule == "float_changes"
    assert "torch.tensor(k)" in found.suggestion
    assert found.fix is None
    needed = diagnose_one(*changes("k", "value", "0.1", "0.2", "1e-05", user_code="return dropout(x, k)"))
    assert needed.suggestion.startswith("Compile with dynamic=None.") and "torch.tensor" not in needed.suggestion
    rate = diagnose_one(*changes("self.param_groups[0]['lr']", "value", "0.1", "0.05", "0.03"))
    assert "lr=torch.tensor(lr)" in rate.suggestion


def test_train_and_eval_are_two_entries():
    found = diagnose_one(*changes("self.drop.training", "value", "True", "False"))
    assert (found.rule, found.severity) == ("train_eval", "low")
    assert diagnose_one(*changes("flag", "value", "True", "False")).rule == "flag"


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (("'a'", "'b'"), "string_changes"),
        (("None", "3"), "optional_argument"),
        (("(1, 2)", "(2, 2)"), "value_changes"),
        (("3", "'a'"), "value_changes"),
    ],
)
def test_other_values(values, rule):
    assert diagnose_one(*changes("k", "value", *values)).rule == rule


@pytest.mark.parametrize(
    ("source", "kind", "values", "rule", "says"),
    [
        ("x.stride()[0]", "tensor_stride", ("6", "1"), "stride_changes", "x = x.contiguous()"),
        ("x.dim()", "tensor_rank", ("2", "1"), "rank_changes", "x.unsqueeze(0)"),
        ("x.dtype", "tensor_dtype", ("torch.float32", "torch.float64"), "dtype_changes", "x = x.to(dtype)"),
        ("x.device", "tensor_device", ("cpu", "cuda"), "device_changes", "x = x.to(device)"),
        ("x.requires_grad", "requires_grad", ("False", "True"), "requires_grad_changes", "x.detach().requires_grad_()"),
        (
            "x",
            "dispatch_keys",
            ("without ADInplaceOrView", "ADInplaceOrView"),
            "dispatch_keys_change",
            "inference_mode",
        ),
        ("x", "dispatch_keys", ("without Python", "Python"), "dispatch_keys_change", "subclass"),
        ("x", "dispatch_keys", ("without Conjugate", "Conjugate"), "dispatch_keys_change", "another kind of tensor"),
        ("x", "type", ("Tensor", "Parameter"), "type_changes", "Parameter"),
        ("x, y", "alias", ("different tensors", "the same tensor"), "alias_changes", "tensor.clone()"),
        ("g", "identity", ("the same object", "E.a (another object)"), "identity_changes", "reuse one of them"),
        ("self", "dead_reference", ("alive", "deallocated"), "dead_reference", "created again"),
        ("backend", "backend", ("a", "b"), "backend_changes", "same object to every torch.compile"),
        ("len(l)", "length", ("5", "2"), "length_changes", "Keep l at a fixed length"),
        ("d['b']", "dict_keys", ("absent", "present"), "dict_keys_change", "same keys in the same order"),
        ("o.extra", "hasattr", ("absent", "present"), "hasattr_changes", "Set o.extra in __init__"),
        ("grad_mode", "global_state", ("True", "False"), "grad_mode", "torch.no_grad()"),
        ("autocast(cpu)_enabled", "global_state", ("unchanged", "changed"), "autocast", "torch.autocast"),
        ("num_threads", "global_state", ("2", "1"), "num_threads", "Call torch.set_num_threads() once"),
        ("something new", "global_state", ("unchanged", "changed"), "global_state", "A mode of the whole program"),
        ("torch.get_default_device()", "default_device", ("None", "meta"), "default_device", "set_default_device()"),
        ("torch function modes", "mode_stack", ("no mode", "DeviceContext"), "mode_stack", "same mode object"),
    ],
)
def test_one_change_comes_with_its_fix(source, kind, values, rule, says):
    found = diagnose_one(*changes(source, kind, *values))
    assert found.rule == rule
    assert says in found.suggestion
    assert found.severity == "low"
    assert found.fix is None
    assert found.details == values


def test_two_modes_at_once_are_both_reported():
    found = diagnose_one(*changes("grad_mode num_threads", "global_state", "unchanged", "changed"))
    assert found.rule == "global_state"
    assert "no_grad" in found.suggestion
    assert "set_num_threads" in found.suggestion
    assert found.title.endswith("grad_mode num_threads changed")


def test_another_object_that_looks_the_same_was_probably_created_again():
    rows = [recompile("g", "identity", "the same object", "Config object (another object)", n) for n in (1, 2)]
    found = diagnose_one(*rows)
    assert found.rule == "fresh_object"
    assert found.suggestion.startswith("Create g once and reuse it.") and "probably" in found.suggestion
    lambdas = diagnose_one(recompile("g", "identity", "the same object", "<lambda> at m.py:3 (another object)"))
    assert lambdas.rule == "fresh_object"


def test_a_class_made_in_a_function():
    reason = "0/0: ___check_type_id(c, 9487), type=<class '__main__.go.<locals>.C'>  # x + c.v  # m.py:3 in f"
    assert diagnose_one(*changes("c", "type", "C", "__main__.C", reason=reason)).rule == "fresh_class"


def test_a_class_that_was_made_once_is_one_of_two_types():
    reason = "0/0: ___check_type_id(x, 9487), type=<class 'torch.Tensor'>  # x * 2  # m.py:3 in f"
    assert diagnose_one(*changes("x", "type", "Tensor", "go.<locals>.Mine", reason=reason)).rule == "type_changes"


def test_numbers_that_rise_are_a_counter_if_they_rise_in_steps():
    assert diagnose_one(*changes("k", "value", "3", "5", "7", "9")).rule == "counter"
    assert diagnose_one(*changes("k", "value", "3", "5", "9", "30")).rule == "int_changes"


def test_a_set_that_grows_is_recognized_by_its_content():
    assert diagnose_one(*changes("d", "value", "{0}", "{0, 1}", "{0, 1, 2}")).rule == "growing_container"
    assert diagnose_one(*changes("d", "value", "{0}", "{1}", "{2}")).rule == "value_changes"
    assert diagnose_one(*changes("d", "value", "{<A>}", "{0, ...", "{2}")).rule == "value_changes"


def test_integers_that_change_together_are_fixed_together():
    rows = changes("s[0]", "value", "2", "3", reason="0/0: s[0] == {old}  # x.reshape(s)  # m.py:3 in f")
    guard = "L['s'][1] == 6  # x.reshape(s)  # m.py:3 in f"
    first, second = diagnose(tables(*rows, failure("s[1]", "value", 1, expected="6", actual="4", guard=guard)))
    assert first.fix == {"dynamic_sources": "L['s'][0],L['s'][1]"}
    assert (second.source, second.count) == ("s[1]", 0)


def test_a_module_of_torch_is_named_as_one():
    found = diagnose_one(
        *sizes("4", "6", tensor="args[0]", function="inner", file="/x/torch/_dynamo/external_utils.py")
    )
    assert found.title.startswith("a compiled module of torch.nn recompiled once")


def test_advice_that_is_not_free_says_what_it_costs():
    assert "slower" in diagnose_one(*sizes("4", "6", "8")).cost
    assert diagnose_one(*changes("self.drop.training", "value", "True", "False")).cost is None


def test_parameters_of_other_sizes_are_of_other_modules():
    reason = (
        "0/0: tensor 'self._modules['lin']._parameters['bias']' size mismatch at index 0. expected {old}, actual {new}"
    )
    found = diagnose_one(*changes("self.lin.bias.size()[0]", "tensor_size", "4", "8", reason=reason))
    assert found.rule == "modules_share_code"
    assert found.fix == {"dynamic_sources": "L['self']._modules['lin']._parameters['bias']"}


def test_a_variable_of_a_function_that_was_passed_in_has_torchs_name():
    reason = '0/0: g.__closure__[0].cell_contents == {old}  # y + k  # m.py:4 in <lambda> (HINT: guard on "k")'
    found = diagnose_one(*changes("k", "value", "1", "2", reason=reason))
    assert found.fix == {"dynamic_sources": "L['g'].__closure__[0].cell_contents"}


def test_a_list_that_grows():
    found = diagnose_one(*changes("len(l)", "length", "2", "3", "4"))
    assert found.rule == "growing_container"
    assert "l grows. " in found.suggestion and "torch.stack" not in found.suggestion, "its items are not known"
    assert "len(l) was 2, then 3, 4" in found.title


def test_an_unknown_guard_gets_torchs_own_words_and_no_advice():
    found = diagnose_one(recompile(None, "other", reason="0/0: ___mystery(x) is 3\nUser stack trace: ..."))
    assert found.suggestion == "torch says: 0/0: ___mystery(x) is 3"
    assert found.fix is None
    assert diagnose_one(recompile(None, "other")).suggestion == "torch gave no reason."
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
    assert find_torch_source(source, reason) == name


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("x.size()[12]", ("x", "size", 12)),
        ("self.w.stride()[0]", ("self.w", "stride", 0)),
        ("x.dim()", ("x", "dim", None)),
        ("x.dtype", ("x", "dtype", None)),
        ("self.size", ("self.size", None, None)),
    ],
)
def test_a_source_is_split_from_its_property(source, parts):
    assert split_property(source) == parts


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ("self.layers[3].attn.n", "self.layers[*].attn.n"),
        ("self.layers[3].w.size()[1]", "self.layers[*].w.size()[1]"),
        ("args[0].size()[1]", "args[0].size()[1]"),
        ("self.sizes[3]", "self.sizes[3]"),
        ("self.xs[3].size()[0]", "self.xs[3].size()[0]"),
        ("len(l)", "len(l)"),
    ],
)
def test_instances_of_a_module_are_grouped_and_inputs_are_not(source, same):
    assert normalize_source(source) == same


def test_types_of_values():
    values = ["True", "None", "-3", "0.5", "1e-05", "nan", "inf", "'a'", '"a"', "(1,)", "<Config object>", ""]
    types = ["bool", "none", "int", "float", "float", "float", "float", "str", "str", "other", "other", "other"]
    assert [get_value_type(v) for v in values] == types
    assert is_rising(("1", "2", "5"))
    assert not is_rising(("1", "2"))
    assert not is_rising(("1", "3", "2"))
    assert not is_rising(("a", "b", "c"))


@pytest.mark.parametrize(
    ("code", "uses"),
    [
        ("return x * k", {"operand"}),
        ("y = torch.relu(x * k)", {"operand"}),
        ("return F.dropout(x, k)", {"argument"}),
        ("return F.dropout(x, 1 - k)", {"argument"}),
        ("return torch.full((3,), fill_value=k)", {"argument"}),
        ("return x[:k] * k", {"index", "operand"}),
        ("return cache[k]", {"index"}),
        ("for i in range(k):", {"range"}),
        ("if k > 0:", {"condition"}),
        ("return x.view(k * 2, -1)", {"argument"}),
        ("k", {"other"}),
        ("return (x", set()),
        (None, set()),
    ],
)
def test_what_a_line_does_with_a_value(code, uses):
    assert find_uses(code, "k") == uses


def test_the_index_of_a_layer_is_no_counter():
    code = "return self.lin(x) + cache[self.layer_idx]"
    found = diagnose_one(*changes("self.layer_idx", "value", "0", "1", "2", reason=MODULE_INT, user_code=code))
    assert found.rule == "instance_constant"
    assert found.suggestion.startswith("Pass what it selects") and found.fix is None
    scaled = diagnose_one(*changes("self.layer_idx", "value", "0", "1", "2", reason=MODULE_INT, user_code="y * 2"))
    assert scaled.fix == {"dynamic_sources": "L['self'].layer_idx"}


@pytest.mark.parametrize(
    ("source", "kind", "values", "rule"),
    [
        ("self.param_groups[0]['betas'][0]", "value", ("0.95", "0.9"), "optimizer_number"),
        ("self.param_groups[0]['lr']", "value", ("0.1", "0.09"), "optimizer_number"),
        ("len(self.state[list(self.state.keys())[0]])", "length", ("0", "1"), "optimizer_state"),
        ("self.state['a']", "dict_keys", ("absent", "present"), "optimizer_state"),
    ],
)
def test_values_of_optimizers(source, kind, values, rule):
    found = diagnose_one(*changes(source, kind, *values))
    assert found.rule == rule
    assert "torch.stack" not in found.suggestion
