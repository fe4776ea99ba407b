"""What records of symbolic shapes show about a value: the line that fixes it, and conditions that exclude others."""

import pytest

from compilediag.diagnosis import diagnose
from compilediag.events import RowList, SymbolicShape
from tests.unit.tables_builder import compiled, failure, recompile, sizes, tables

#: Torch's condition on the sizes of the new entry -> how it is shown where the size before does not fit it.
CONDITIONS = {
    "Ne(s77, 4)": "x.shape[0] != 4",
    "Eq(Mod(s77, 3), 0)": "x.shape[0] % 3 == 0",
    "Eq(Mod(s77, 2), 0)": None,
    "Ne((s77//4), 1)": "x.shape[0] // 4 != 1",
    "16*((s77//4)) <= 4*s77": None,
    "s77 >= 5": "x.shape[0] >= 5",
    "s77 >= 4": None,
    "-s77 + 5 > 0": None,
    "Max(2, s77) == s77": None,
    "Ne(s77, s1)": None,
    "__import__('os')": None,
    "s77 >": None,
    "s77 // 0": None,
}


@pytest.mark.parametrize("expression", CONDITIONS)
def test_an_entry_that_excludes_the_value_before_is_a_branch(expression):
    found, shown = diagnose_with(shape("guarded", expression=expression)), CONDITIONS[expression]
    assert found.rule == ("size_changes" if shown is None else "branch")
    assert shown is None or f"only for {shown} (m.py:7" in found.suggestion


@pytest.mark.parametrize(
    ("values", "is_usual"),
    [
        *(("4 6", True), ("4 1 6", True), ("1 4", True), ("4 6 1 0", True), ("4 1 0", True)),
        *(("1 4 6", False), ("4 6 8", False), ("4 1 6 8", False)),
    ],
)
def test_recompiles_that_torch_needs_by_default(values, is_usual):
    (found,) = diagnose(tables(*sizes(*values.split())))
    assert ("dynamic=False" not in found.suggestion) is is_usual


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
