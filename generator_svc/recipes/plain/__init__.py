"""Plain kernels for any graph of known operators: correct first, a start for the search."""

from generator_svc.recipes.plain.recipe import PlainRecipe

__all__ = ["PlainRecipe"]
