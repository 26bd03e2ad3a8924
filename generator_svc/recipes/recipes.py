"""Chooses the recipe that covers a graph in a language."""

from generator_svc.recipes import cuda, sycl
from generator_svc.recipes.graph_reader import ReferenceGraph
from generator_svc.recipes.recipe import Recipe
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language

_PRODUCTS = ("aten.linear", "aten.matmul", "aten.mm", "aten.addmm")


def choose_recipe(graph: ReferenceGraph, *, language: Language, device: DeviceSpec) -> Recipe:
    """Return the recipe for `graph`.

    Args:
        graph: The operators.
        language: Of the kernels.
        device: They run on; its size decides defaults.

    Raises:
        RecipeUnsupported: none covers the graph; the message names what is in the way.
    """
    is_product = any(node.op.startswith(_PRODUCTS) for node in graph.nodes)
    if language is Language.SYCL:
        return sycl.MatmulRecipe(graph) if is_product else sycl.RowRecipe(graph)
    if is_product:
        return cuda.MatmulRecipe(graph, compute_units=device.compute_units)
    return cuda.RowRecipe(graph)
