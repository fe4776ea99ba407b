"""Add to an advice what the library offers whose code recompiled: see `diagnosis/recipes/`."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..change import CodeChange, Edit
from ..recipes import Recipe, find_recipe
from .advice import Advice
from .cause import Cause
from .edits import get_site, parse_code


def add_recipe(advice: Advice, cause: Cause) -> Advice:
    """The advice with the recipe that applies to its cause, if there is one.

    What a program can change comes first, so that a plan can be applied: an argument of the user's call, then the
    changes of the advice, then what only a person can follow.
    """
    site = get_site(cause)
    files = tuple(row.file for row in cause.recompiles if row.file)
    recipe = find_recipe(advice.rule, cause.source, site.call if site else None, files)
    if recipe is None:
        return advice
    action, edit = recipe.format(recipe.action, cause.values), _add_keyword(recipe, cause)
    applicable = tuple(change for change in advice.changes if change.can_be_applied)
    ways = (CodeChange(edits=edit, text=action), *applicable) if edit else (*applicable, CodeChange(text=action))
    others = f" Or {advice.action[:1].lower()}{advice.action[1:]}" if applicable else ""
    return replace(advice, action=f"{action}{others}", changes=ways)


def _add_keyword(recipe: Recipe, cause: Cause) -> tuple[Edit, ...]:
    """The edit that gives the user's call the recipe's argument; none if the call is not known or has it already."""
    site = get_site(cause)
    if recipe.keyword is None or site is None or not site.call:
        return ()
    call = add_argument(site.call, recipe.format(recipe.keyword, cause.values))
    return (Edit(site.file, site.line, "replace", site.call, call),) if call else ()


def add_argument(call: str, argument: str) -> str | None:
    """The text of a call with one more keyword argument, `name=value`; None if it has one of that name already."""
    tree = parse_code(call)
    outer = tree.body[0].value if tree and isinstance(tree.body[0], ast.Expr) else None
    if not isinstance(outer, ast.Call) or any(argument.startswith(f"{keyword.arg}=") for keyword in outer.keywords):
        return None
    inside = call.rstrip()[:-1].rstrip()
    separator = "" if inside.endswith("(") else " " if inside.endswith(",") else ", "
    return f"{inside}{separator}{argument})"
