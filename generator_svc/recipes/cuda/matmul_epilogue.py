"""The function that finishes a pack of a matrix product, and the tensors it reads."""

from generator_svc.recipes.cpp_operations import Spelling
from generator_svc.recipes.cuda.pack_body import PackBody
from generator_svc.recipes.expression import Load, Value, operations
from generator_svc.recipes.matmul_epilogue import MatmulEpilogue
from generator_svc.recipes.matmul_program import PRODUCT, MatmulProgram
from generator_svc.recipes.row_writer import RowWriter


class CudaEpilogue(MatmulEpilogue):
    """Text of `finish`, which stores a pack of the output.

    Args:
        program: The product and what is done to each of its elements.
        spelling: Of operations.

    Raises:
        RecipeUnsupported: something that depends on a row.
    """

    def __init__(self, program: MatmulProgram, spelling: Spelling) -> None:
        super().__init__(program)
        self._body = body = PackBody(prefix="p", subscript="")
        writer = RowWriter(spelling, self, columns="(float)COLS")
        names: dict[Value, str] = {}
        element = writer.element(program.value, names, body.elements)
        body.elements.append(f"done.v[j] = {element};")
        loads = body.load_lines(full="at", column="n", last=frozenset())
        lines = [
            *writer.lines,
            *body.declarations,
            *loads,
            "Pack done;",
            *body.statements(),
            "store(to + at, done);",
        ]
        text = "".join(f"  {line}\n" for line in lines)
        self.parameters = "".join(f", const float* __restrict__ {t}_in" for t in self.tensors)
        self.function = (
            spelling.functions(operations((program.value,)))
            + "static __device__ __forceinline__ void finish(\n"
            + f"    const Pack& {PRODUCT}, size_t at, int n, float* __restrict__ to"
            + f"{self.parameters}) {{\n{text}}}\n"
        )

    def element(self, load: Load) -> str:
        """Return the present element of a FULL or COLUMN tensor."""
        return f"{PRODUCT}.v[j]" if load.name == PRODUCT else self._body.read(load)
