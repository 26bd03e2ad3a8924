"""Chooses the recipe that covers a graph in a language."""

from generator_svc.recipes import cuda, sycl
from generator_svc.recipes.genome import plain
from generator_svc.recipes.graph_reader import ReferenceGraph, read_graph
from generator_svc.recipes.plain import PlainRecipe
from generator_svc.recipes.recipe import Recipe
from generator_svc.recipes.unsupported import RecipeUnsupported
from generator_svc.recipes.written_room import without_room
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.languages import language_named

_MISREADINGS = (LookupError, ValueError, TypeError, SyntaxError, ArithmeticError)
"""What comes of arguments that an operator does not have: a graph is what a client sent."""
_WRITTEN = (Language.SYCL, Language.CUDA)
_PRODUCTS = ("aten.linear", "aten.matmul", "aten.mm", "aten.addmm")


def recipe_for(
    admission: Admission, language: Language, library_ops: tuple[str, ...] = ()
) -> Recipe:
    """Return the recipe for an admitted task: one that knows its pattern, else plain kernels.

    Args:
        admission: The task.
        language: Of the kernels.
        library_ops: Library calls that the task allows, by their names in plans.

    Raises:
        RecipeUnsupported: none covers the task; the message names what is in the way.
    """
    if language not in _WRITTEN:
        title = language_named(language.value).title
        raise RecipeUnsupported(f"a task in {title}: recipes write SYCL and CUDA C++")
    try:
        return _pattern_or_plain(without_room(admission), language, library_ops)
    except _MISREADINGS as error:
        raise RecipeUnsupported("a graph whose arguments its operators do not take") from error


def _pattern_or_plain(
    admission: Admission, language: Language, library_ops: tuple[str, ...]
) -> Recipe:
    try:
        recipe = choose_recipe(read_graph(admission), language=language, device=admission.device)
        recipe.write(recipe.normalised(plain(recipe.family, recipe.genes)))
    except RecipeUnsupported:
        return PlainRecipe(admission, language, library_ops)
    return recipe


def choose_recipe(graph: ReferenceGraph, *, language: Language, device: DeviceSpec) -> Recipe:
    """Return the recipe that knows the pattern of `graph`.

    Args:
        graph: The operators.
        language: Of the kernels.
        device: They run on; its size decides defaults.

    Raises:
        RecipeUnsupported: none covers the graph; the message names what is in the way.
    """
    is_product = any(node.op.startswith(_PRODUCTS) for node in graph.nodes)
    if language is Language.SYCL:
        return sycl.SyclMatmulRecipe(graph) if is_product else sycl.SyclRowRecipe(graph)
    if is_product:
        return cuda.CudaMatmulRecipe(graph, compute_units=device.compute_units)
    return cuda.CudaRowRecipe(graph)
