"""Chooses the recipe that covers a graph."""

from generator_svc.recipes.graph_reader import ReferenceGraph
from generator_svc.recipes.recipe import Recipe
from generator_svc.recipes.row_recipe import RowRecipe


def choose_recipe(graph: ReferenceGraph) -> Recipe:
    """Return the recipe for `graph`.

    Raises:
        RecipeUnsupported: none covers it; the message is that of the closest one.
    """
    return RowRecipe(graph)
