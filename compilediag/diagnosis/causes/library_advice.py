"""Add to an advice what the library offers whose code recompiled: see `diagnosis/recipes/`."""

from __future__ import annotations

from dataclasses import replace

from ..change import CodeChange
from ..recipes import find_recipe
from .advice import Advice
from .cause import Cause
from .edits import get_site


def add_recipe(advice: Advice, cause: Cause) -> Advice:
    """The advice with the recipe that applies to its cause, if there is one.

    What a program can change comes first, so that a plan can be applied. Advice that only a person can follow is
    replaced by the recipe.
    """
    site = get_site(cause)
    files = tuple(row.file for row in cause.recompiles if row.file)
    recipe = find_recipe(advice.rule, cause.source, site.call if site else None, files)
    if recipe is None:
        return advice
    applicable = tuple(change for change in advice.changes if change.can_be_applied)
    others = f" Or {advice.action[:1].lower()}{advice.action[1:]}" if applicable else ""
    return replace(
        advice,
        action=f"{recipe.action}{others}",
        explanation=recipe.why or advice.explanation,
        changes=(*applicable, CodeChange(text=recipe.action)),
        has_recipe=not recipe.is_partial,
        is_expected=advice.is_expected and not recipe.removes_expected,
    )
