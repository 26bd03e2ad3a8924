"""Chooses the recipe that covers a graph."""

from generator_svc.recipes.graph_reader import ReferenceGraph
from generator_svc.recipes.recipe import Recipe
from generator_svc.recipes.sycl.matmul_recipe import MatmulRecipe
from generator_svc.recipes.sycl.row_recipe import RowRecipe

_PRODUCTS = ("aten.linear", "aten.matmul", "aten.mm", "aten.addmm")


def choose_recipe(graph: ReferenceGraph) -> Recipe:
    """Return the recipe for `graph`.

    Raises:
        RecipeUnsupported: none covers it; the message names what is in the way.
    """
    if any(node.op.startswith(_PRODUCTS) for node in graph.nodes):
        return MatmulRecipe(graph)
    return RowRecipe(graph)
