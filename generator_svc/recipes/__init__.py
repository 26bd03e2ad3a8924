"""Recipes: composes kernels from the reference's operator graph, with no model and no network."""

from generator_svc.recipes.propose import missing_recipe, propose
from generator_svc.recipes.unsupported import RecipeUnsupported

__all__ = ["RecipeUnsupported", "missing_recipe", "propose"]
