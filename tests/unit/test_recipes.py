"""Recipes of libraries: which cause they fit, what they say, and the argument that they add to the user's call."""

from dataclasses import dataclass

import pytest

from compilediag.diagnosis.causes.cause import Cause
from compilediag.diagnosis.recipes import RECIPES, find_recipe
from compilediag.diagnosis.rule import Advice, Rule, list_changes
from compilediag.diagnosis.rules.recompiles import add_recipe
from compilediag.events import Recompile

BETA = "self.param_groups[0]['betas'][0]"
ROWS = "kwargs['input_ids'].size()[0]"
CACHE = "kwargs['past_key_values'].layers[0].keys.size()[2]"
STATIC = "model.generate(x, cache_implementation='static')"
FILES = ("/site-packages/transformers/utils/generic.py",)


@dataclass(frozen=True)
class Site:
    """The user's line."""

    file: str
    line: int
    code: str
    call: str


@dataclass(frozen=True)
class CauseAtSite(Cause):
    """A cause whose call site is known."""

    call_site: Site | None = None


def make_cause(source, file, call="", expected="8", actual="12"):
    row = Recompile(time_ns=1, file=file, function="f", guard_source=source, expected=expected, actual=actual)
    return CauseAtSite((row,), source, call_site=Site("/srv/train.py", 3, f"x = {call}", call))


@pytest.mark.parametrize(
    ("rule", "source", "call", "files", "name"),
    [
        (
            "size_changes",
            CACHE,
            "m.generate(x, cache_implementation='static')",
            FILES,
            "transformers_static_cache_length",
        ),
        ("size_changes", CACHE, "m.generate(x)", FILES, None),
        ("size_changes", CACHE, None, FILES, None),
        ("size_changes", ROWS, "trainer.train()", FILES, "transformers_trainer_last_batch"),
        ("size_changes", ROWS, "trainer.train()", ("/home/me/train.py",), None),
        ("dtype_changes", ROWS, "trainer.train()", FILES, None),
        (
            "float_changes",
            "self.param_groups[0]['betas'][0]",
            None,
            ("/x/torch/optim/adam.py",),
            "torch_one_cycle_momentum",
        ),
        (
            "float_changes",
            "self.param_groups[0]['betas'][0]",
            None,
            (r"C:\x\torch\optim\adam.py",),
            "torch_one_cycle_momentum",
        ),
    ],
)
def test_a_recipe_fits_what_it_was_written_for(rule, source, call, files, name):
    found = find_recipe(rule, source, call, files)
    assert (found and found.name) == name


def test_names_are_unique_and_texts_are_sentences():
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES)
    assert all(recipe.action[0].isupper() and recipe.action.endswith(".") for recipe in RECIPES)


def test_what_a_person_has_to_do_comes_after_what_a_program_can():
    setting = {"dynamic_sources": "L['x']"}
    advice = Advice(Rule("size_changes"), "Make it dynamic.", changes=list_changes(setting))
    found = add_recipe(advice, make_cause(ROWS, FILES[0], "trainer.train()"))
    assert [bool(change.settings) for change in found.changes] == [True, False]
    assert "dataloader_drop_last=True" in found.changes[1].text


def test_an_advice_that_nobody_can_apply_is_replaced():
    advice = Advice(Rule("string_changes"), "Keep it to few values.", changes=list_changes("Keep it to few values."))
    found = add_recipe(advice, make_cause("self.active_adapter", "/site-packages/peft/peft_model.py"))
    assert "hotswap_adapter" in found.action and "few values" not in found.action
    assert len(found.changes) == 1


def test_a_recipe_can_bring_its_own_explanation():
    advice = Advice(Rule("optimizer_number"), "Keep it constant.", "It is compiled with dynamic=False.")
    found = add_recipe(advice, make_cause(BETA, "/site-packages/torch/optim/adam.py"))
    assert "cycle_momentum=False" in found.action and "dynamic=False" not in found.explanation


def test_another_cause_keeps_its_advice():
    advice = Advice(Rule("size_changes"), "Make it dynamic.")
    assert add_recipe(advice, make_cause("x.size()[0]", "/home/me/model.py")) is advice
