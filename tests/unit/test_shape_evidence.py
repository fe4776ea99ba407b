"""What records of symbolic shapes show about a value: the line that fixes it, and conditions that exclude others."""

import pytest

from compilediag.diagnosis import diagnose
from compilediag.diagnosis.causes.value_facts import evaluate_condition, format_condition
from compilediag.diagnosis.rules.guards_on_numbers import count_usual
from compilediag.events import RowList, SymbolicShape
from tests.unit.tables_builder import compiled, failure, recompile, tables


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("Ne(s0, 4)", False),
        ("Eq(Mod(s0, 4), 0)", True),
        ("Ne((s0//4), 1)", False),
        ("16*((s0//4)) <= 4*s0", True),
        ("s0 >= 5", False),
        ("-s0 + 5 > 0", True),
        ("Max(2, s0) == s0", True),
        ("Ne(s0, s1)", None),
        ("__import__('os')", None),
        ("s0 >", None),
        ("s0 // 0", None),
    ],
)
def test_a_condition_is_evaluated_for_a_value(expression, holds):
    assert evaluate_condition(expression, {"s0": 4}) is holds


@pytest.mark.parametrize(("height", "width", "holds"), [(16, 16, False), (24, 24, True), (16, 40, True)])
def test_a_condition_on_several_sizes_is_evaluated(height, width, holds):
    assert evaluate_condition("48*s0*s1 > 20480", {"s0": height, "s1": width}) is holds


def test_a_condition_is_written_as_python():
    assert format_condition("Ne(Mod(s0, 8), 0)", {"s0": "x.size()[0]"}) == "x.shape[0] % 8 != 0"
    assert format_condition("s0*s1 > n", {"s0": "x.size()[0]", "s1": "x.size()[1]"}) == "x.shape[0] * x.shape[1] > n"
    assert format_condition("s0 >", {"s0": "n"}) == "n >"


@pytest.mark.parametrize(
    ("values", "count"),
    [("4 6", 1), ("4 1 6", 2), ("1 4", 1), ("1 4 6", 1), ("4 6 1 0", 3), ("4 1 0", 2), ("4", 0), ("1 1", 0)],
)
def test_recompiles_that_torch_needs_by_default(values, count):
    assert count_usual(values.split()) == count


def shape(action, **columns):
    if action != "specialized":
        columns["symbols"] = {"s77": "L['x'].size()[0]"}
    place = {"user_file": "/m.py", "user_line": 7, "user_code": "for i in range(n):"}
    return SymbolicShape(time_ns=1, compile_key="k1", action=action, source="L['x'].size()[0]", **place, **columns)


def diagnose_with(row, **changes):
    size = recompile("x.size()[0]", "tensor_size", "4", "6", compile_key="k1", **changes)
    (found,) = diagnose(RowList([size, row]))
    return found


def test_the_line_that_needs_the_number_is_named_after_one_change():
    found = diagnose_with(shape("specialized", value="6"), user_code="y = x * 2", user_file="/m.py", user_line=3)
    assert found.rule == "specialized"
    assert "(m.py:7: for i in range(n):)" in found.suggestion and "m.py:3" not in found.suggestion
    assert found.fix is None


def test_an_entry_that_excludes_the_value_before_is_a_branch():
    found = diagnose_with(shape("guarded", expression="Ne(s77, 4)"))
    assert found.rule == "branch"
    assert "only for x.shape[0] != 4 (m.py:7" in found.suggestion
    assert diagnose_with(shape("guarded", expression="s77 >= 4")).rule == "size_changes"


def grow(*symbols):
    """A tensor of which both sizes change at one recompile, and the records of symbols of the new entry."""
    sizes = [("x.size()[0]", "4", "6"), ("x.size()[1]", "16", "24")]
    source, old, new = sizes[0]
    failures = [failure(source, "tensor_size", 1, expected=old, actual=new) for source, old, new in sizes]
    return diagnose(tables(compiled(), recompile(source, "tensor_size", old, new), *failures, *symbols))


def test_a_condition_on_two_sizes_that_excludes_those_before_is_a_branch():
    symbols = {"s7": "L['x'].size()[0]", "s8": "L['x'].size()[1]"}
    columns = {"time_ns": 1, "compile_key": "0.0/1", "action": "guarded", "source": str(symbols), "symbols": symbols}
    branches = {found.rule for found in grow(SymbolicShape(expression="s7*s8 > 100", **columns))}
    assert branches == {"branch"}
    assert {found.rule for found in grow(SymbolicShape(expression="s7*s8 < 900", **columns))} == {"size_changes"}


def single(tensor, *records):
    """The findings of a size that becomes 1 at the second recompile."""
    rows = [
        recompile("x.size()[1]", "tensor_size", "16", "24", 1),
        recompile("x.size()[0]", "tensor_size", "4", "1", 2),
    ]
    records = [
        SymbolicShape(time_ns=1, compile_key="0.0/1", action="guarded", source=str(symbols), symbols=symbols, **record)
        for symbols, record in records
    ]
    entries = [compiled(compile_id=f"0/{number}") for number in range(3)]
    return next(f for f in diagnose(tables(*entries, *rows, *records)) if f.source == "x.size()[0]")


def test_a_tensor_whose_other_size_has_a_condition_is_not_unbacked():
    free = single("x")
    assert free.fix == {"unbacked_sources": "L['x']"}
    limited = single("x", ({"s8": "L['x'].size()[1]"}, {"expression": "s8 <= 512"}))
    assert limited.fix is None and "mark_unbacked(x, 0)" in limited.suggestion
    related = single("x", ({"s7": "L['x'].size()[0]", "s8": "L['y'].size()[0]"}, {"expression": "Eq(s7, s8)"}))
    assert related.fix == {"unbacked_sources": "L['x']"}


def test_sizes_beside_a_special_one_can_be_dynamic():
    rows = [
        recompile("x.size()[0]", "tensor_size", "4", "1", 1),
        recompile("x.size()[0]", "tensor_size", "4", "9", 2, closest_compile_id="0/0"),
    ]
    symbols = {"s7": "L['x'].size()[0]"}
    record = {"expression": "s7 <= 512", "source": str(symbols), "symbols": symbols}
    needed = SymbolicShape(time_ns=1, compile_key="0.0/2", action="guarded", **record)
    (found,) = diagnose(tables(*(compiled(compile_id=f"0/{number}") for number in range(3)), *rows, needed))
    assert found.rule == "size_zero_one" and found.fix == {"dynamic_sources": "L['x']"}
    assert "For the rest, pad to 2 or more" in found.suggestion
