"""The function that finishes elements of a matrix product, and the tensors it reads."""

from typing import Final

from generator_svc.recipes.expression import Extent, Load, operations
from generator_svc.recipes.matmul_epilogue import MatmulEpilogue
from generator_svc.recipes.matmul_program import PRODUCT, MatmulProgram
from generator_svc.recipes.row_writer import RowWriter
from generator_svc.recipes.sycl.spelling import sycl_spelling

_HEAD: Final = (
    f"static inline float finish(float {PRODUCT}, size_t at, int n",
    "template <class Place>\n"
    f"static inline kf::Vector finish(kf::Vector {PRODUCT}, size_t at, Place n",
)
"""Of an element, its place in the output and its column; of a vector, its row's and its own."""


class SyclEpilogue(MatmulEpilogue):
    """Text of `finish`, which returns an element of the output, or a vector of them.

    Args:
        program: The product and what is done to each of its elements.
        is_vector: Whether it is given vectors, at a place in a row.

    Raises:
        RecipeUnsupported: something that depends on a row.
    """

    def __init__(self, program: MatmulProgram, *, is_vector: bool) -> None:
        super().__init__(program)
        self._is_vector = is_vector
        spell = sycl_spelling({"who": "vector", "exp": "polynomial"} if is_vector else {})
        writer = RowWriter(spell, self, columns="")
        lines: list[str] = []
        kind = "kf::Vector" if is_vector else "float"
        result = writer.element(program.value, {}, lines, kind)
        arguments = "".join(f", const float* {t}_in" for t in self.tensors)
        body = "".join(f"  {line}\n" for line in (*writer.lines, *lines))
        functions = spell.functions(operations((program.value,)))
        self.function = (
            f"{functions}{_HEAD[is_vector]}{arguments}) "
            f"{{\n  (void)at, (void)n;\n{body}  return {result};\n}}\n"
        )

    def element(self, load: Load) -> str:
        """Return the present element of a FULL or COLUMN tensor."""
        if load.name == PRODUCT:
            return PRODUCT
        is_full = load.extent is Extent.FULL
        if self._is_vector:
            return f"kf::load({load.name}_in{' + at' if is_full else ''}, n)"
        return f"{load.name}_in[{'at' if is_full else 'n'}]"
