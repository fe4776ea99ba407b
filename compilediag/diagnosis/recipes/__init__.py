"""Knowledge about libraries: recipes against recompiles, as data."""

from __future__ import annotations

from .known_recipes import RECIPES, find_recipe
from .recipe import Recipe

__all__ = ["RECIPES", "Recipe", "find_recipe"]
