"""Translates a graph with one matrix product and pointwise operators after it."""

from dataclasses import dataclass

from generator_svc.recipes.expression import Extent, Load, Value, apply
from generator_svc.recipes.graph_reader import Reference, ReferenceGraph, arguments
from generator_svc.recipes.row_program import RowTranslation
from generator_svc.recipes.unsupported import RecipeUnsupported
from kernel_foundry.domain.admission import GraphNode

PRODUCT = "product"
"""Name of the `Load` that stands for an element of the product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """out[m, n] = sum over k of left[m, k] times right[n, k] (or right[k, n])."""

    left: str
    right: str
    is_right_transposed: bool
    """True when the right operand is stored as (n, k), as a linear layer's weight is."""
    bias: str | None


@dataclass(frozen=True, kw_only=True)
class MatmulProgram:
    """One output: a product and what is done to each of its elements."""

    product: Product
    output: str
    value: Value
    """Over the elements of the product, which is a FULL `Load` called `PRODUCT`."""


def translate_matmul(graph: ReferenceGraph) -> MatmulProgram:
    """Return the graph as a product with an epilogue.

    Raises:
        RecipeUnsupported: no product, several, or an operator that is not pointwise.
    """
    transposed: dict[str, str] = {}
    translation: RowTranslation | None = None
    product: Product | None = None
    for node in graph.nodes:
        name = node.op.removeprefix("aten.").split(".")[0]
        if name in ("t", "transpose", "permute", "numpy_T") and product is None:
            source = arguments(node)[0][0]
            transposed[node.name] = source.name
        elif name in ("linear", "matmul", "mm", "addmm"):
            if product is not None:
                raise RecipeUnsupported("two matrix products; recipes do one")
            product = _product(name, node, graph, transposed)
            translation = RowTranslation(graph, graph.shapes[node.name], one_pass=False)
            value: Value = Load(extent=Extent.FULL, name=PRODUCT)
            if product.bias is not None:
                value = apply("add", value, translation.value(Reference(name=product.bias)))
            translation.define(node.name, value)
        elif translation is None:
            raise RecipeUnsupported(f"{node.op} before the matrix product")
        else:
            translation.translate(node)
    if translation is None or product is None:
        raise RecipeUnsupported("no matrix product")
    if len(graph.outputs) != 1:
        raise RecipeUnsupported("several outputs of a matrix product")
    final = translation.value(Reference(name=graph.results[0]))
    if final.extent is not Extent.FULL or _has_reduction(final):
        raise RecipeUnsupported("a reduction after the matrix product")
    return MatmulProgram(product=product, output=graph.outputs[0], value=final)


def _product(
    name: str, node: GraphNode, graph: ReferenceGraph, transposed: dict[str, str]
) -> Product:
    operands = [a.name for a in arguments(node)[0] if isinstance(a, Reference)]
    bias = None
    if name == "addmm":
        bias, *operands = operands
    elif name == "linear" and len(operands) == 3:
        bias = operands.pop()
    left, right = operands
    is_transposed = name == "linear"
    if right in transposed:
        right, is_transposed = transposed[right], not is_transposed
    if left not in graph.inputs or right not in graph.inputs:
        raise RecipeUnsupported("a matrix product of something computed")
    if len(graph.shapes[right]) != 2 or len(graph.shapes[left]) < 2:
        raise RecipeUnsupported("a batched matrix product")
    return Product(left=left, right=right, is_right_transposed=is_transposed, bias=bias)


def _has_reduction(value: Value) -> bool:
    return value.extent is Extent.ROW or any(_has_reduction(a) for a in value.arguments)
