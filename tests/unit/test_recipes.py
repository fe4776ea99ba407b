"""Recipes of libraries: which cause they fit, and what becomes of the advice beside them."""

import pytest

from compilediag.diagnosis import diagnose
from compilediag.events import StackFrame
from tests.unit.tables_builder import compiled, recompile, tables

BETA = "self.param_groups[0]['betas'][0]"
ROWS = "kwargs['input_ids'].size()[0]"
CACHE = "kwargs['past_key_values'].layers[0].keys.size()[2]"
LIBRARY = "/site-packages/transformers/utils/generic.py"
ADAM = "/x/site-packages/torch/optim/adam.py"
#: What each recipe says that a test here uses.
LENGTH, LAST_BATCH = "max_cache_len=length", "dataloader_drop_last=True"
MOMENTUM, ADAPTER = "OneCycleLR(..., cycle_momentum=False)", "hotswap_adapter"
SAID = (LENGTH, LAST_BATCH, MOMENTUM, ADAPTER)


def diagnose_one(source, file, *values, call=None, **more):
    """The finding of a function in `file` whose value changed, and which the user calls by `call`."""
    place = {"function": "f", "file": file, "line": 10}
    frames = [
        StackFrame(time_ns=0, stack="m", function="<module>", file="/srv/train.py", line=3, code=call, call=call),
        StackFrame(
            time_ns=0,
            stack="w",
            caller="m",
            function="wrapper",
            file="/x/site-packages/torch/_dynamo/eval_frame.py",
            line=1,
        ),
        StackFrame(time_ns=0, stack="s", caller="w", parameters=["args", "kwargs"], **place),
    ]
    kind = "tensor_size" if "size()" in source else "tensor_dtype" if "dtype" in source else "value"
    rows = [recompile(source, kind, *values[at : at + 2], at + 1, **place, **more) for at in range(len(values) - 1)]
    compiles = [compiled(compile_id=f"0/{at}", stack="s", **place) for at in range(len(values))]
    (found,) = diagnose(tables(*frames if call else (), *compiles, *rows))
    return found


def list_said(found):
    return [text for text in SAID if text in found.suggestion]


@pytest.mark.parametrize(
    ("source", "call", "file", "said"),
    [
        (CACHE, "m.generate(x, cache_implementation='static')", LIBRARY, [LENGTH]),
        (CACHE, "m.generate(x)", LIBRARY, []),
        (CACHE, None, LIBRARY, []),
        (ROWS, "trainer.train()", LIBRARY, [LAST_BATCH]),
        (ROWS, "trainer.train()", "/home/me/library/model.py", []),
        ("kwargs['input_ids'].dtype", "trainer.train()", LIBRARY, []),
        (BETA, None, ADAM, [MOMENTUM]),
        (BETA, None, r"C:\x\torch\optim\adam.py", [MOMENTUM]),
    ],
)
def test_a_recipe_fits_what_it_was_written_for(source, call, file, said):
    values = ("0.95", "0.9") if source == BETA else ("8", "12")
    assert list_said(diagnose_one(source, file, *values, call=call)) == said


def test_what_a_person_has_to_do_comes_after_what_a_program_can():
    reason = "tensor 'kwargs['input_ids']' size mismatch at index 0. expected 8, actual 12"
    found = diagnose_one(ROWS, LIBRARY, "8", "12", call="trainer.train()", reason=reason)
    assert [bool(change.settings) for change in found.changes] == [True, False]
    assert LAST_BATCH in found.changes[1].text


def test_an_advice_that_nobody_can_apply_is_replaced():
    found = diagnose_one("self.active_adapter", "/site-packages/peft/peft_model.py", "'a'", "'b'", "'c'")
    assert list_said(found) == [ADAPTER] and "few values" not in found.suggestion and len(found.changes) == 1


def test_a_recipe_can_bring_its_own_explanation():
    found = diagnose_one(BETA, ADAM, "0.95", "0.9")
    assert list_said(found) == [MOMENTUM] and "dynamic=False" not in found.suggestion


def test_another_cause_keeps_its_advice():
    assert list_said(diagnose_one("x.size()[0]", "/home/me/model.py", "8", "12")) == []
