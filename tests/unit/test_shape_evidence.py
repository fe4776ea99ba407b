"""What records of symbolic shapes show about a value: the line that fixes it, and conditions that exclude others."""

import pytest

from compilediag.diagnosis import diagnose
from compilediag.diagnosis.causes.advice import count_usual
from compilediag.diagnosis.causes.shape_evidence import evaluate_condition, format_condition
from compilediag.events import RowList, SymbolicShape
from tests.unit.tables_builder import recompile


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
    assert evaluate_condition(expression, "s0", 4) is holds


def test_a_condition_is_written_as_python():
    assert format_condition("Ne(Mod(s0, 8), 0)", "s0", "x.size()[0]") == "x.size(0) % 8 != 0"
    assert format_condition("s0 >", "s0", "n") == "n >"


@pytest.mark.parametrize(
    ("values", "count"),
    [("4 6", 1), ("4 1 6", 2), ("1 4", 1), ("1 4 6", 1), ("4 6 1 0", 3), ("4 1 0", 2), ("4", 0), ("1 1", 0)],
)
def test_recompiles_that_torch_needs_by_default(values, count):
    assert count_usual(values.split()) == count


def shape(action, **columns):
    source = "L['x'].size()[0]" if action == "specialized" else "s77 = L['x'].size()[0]"
    place = {"user_file": "/m.py", "user_line": 7, "user_code": "for i in range(n):"}
    return SymbolicShape(time_ns=1, compile_key="k1", action=action, source=source, **place, **columns)


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
    assert "only for x.size(0) != 4 (m.py:7" in found.suggestion
    assert diagnose_with(shape("guarded", expression="s77 >= 4")).rule == "size_changes"
