"""The function that finishes an element of a matrix product, and the tensors it reads."""

from generator_svc.recipes.expression import Extent, Load, operations
from generator_svc.recipes.matmul_epilogue import MatmulEpilogue
from generator_svc.recipes.matmul_program import PRODUCT, MatmulProgram
from generator_svc.recipes.row_writer import RowWriter
from generator_svc.recipes.sycl.spelling import sycl_spelling


class SyclEpilogue(MatmulEpilogue):
    """Text of `finish`, which returns an element of the output.

    Args:
        program: The product and what is done to each of its elements.

    Raises:
        RecipeUnsupported: something that depends on a row.
    """

    def __init__(self, program: MatmulProgram) -> None:
        super().__init__(program)
        spell = sycl_spelling({})
        writer = RowWriter(spell, self, columns="")
        lines: list[str] = []
        result = writer.element(program.value, {}, lines)
        arguments = "".join(f", const float* {t}_in" for t in self.tensors)
        body = "".join(f"  {line}\n" for line in (*writer.lines, *lines))
        functions = spell.functions(operations((program.value,)))
        self.function = (
            f"{functions}static inline float finish(float {PRODUCT}, size_t at, int n{arguments}) "
            f"{{\n  (void)at, (void)n;\n{body}  return {result};\n}}\n"
        )

    def element(self, load: Load) -> str:
        """Return the present element of a FULL or COLUMN tensor."""
        if load.name == PRODUCT:
            return PRODUCT
        return f"{load.name}_in[{'at' if load.extent is Extent.FULL else 'n'}]"
