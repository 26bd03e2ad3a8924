"""Emits a pointwise chain as one CUDA kernel over packs, whatever row they belong to."""

from generator_svc.recipes.cuda.pack_body import PackBody, loop
from generator_svc.recipes.cuda.spelling import cuda_spelling, memory_functions
from generator_svc.recipes.expression import Extent, Load, Reduce, Value, operations
from generator_svc.recipes.genome import Genome
from generator_svc.recipes.row_program import RowProgram
from generator_svc.recipes.row_writer import RowWriter

KERNEL = "fused_elements"

_UNROLL = "#pragma unroll"


def is_flat(program: RowProgram) -> bool:
    """Return whether no element of `program` depends on its row."""
    open_values = list(program.values)
    while open_values:
        value = open_values.pop()
        if value.extent is Extent.ROW or isinstance(value, Reduce):
            return False
        open_values.extend(value.arguments)
    return True


class FlatKernel:
    """The text of one kernel; used once.

    Args:
        program: What it computes; nothing in it depends on the row.
        genome: How.
    """

    def __init__(self, program: RowProgram, genome: Genome) -> None:
        self._program = program
        genes = dict(genome.genes)
        self._is_streaming = genes["cache"] == "streaming"
        self._spelling = cuda_spelling(genes)
        self._body = PackBody(prefix="p", subscript="[u]")
        self._is_tail = False

    def text(self) -> str:
        """Return the device code."""
        writer = RowWriter(self._spelling, self, columns="(float)COLS")
        body, names = self._body, dict[Value, str]()
        writer.prepare(self._program.values, None)
        for output, value in self._program.outputs:
            element = writer.element(value, names, body.elements)
            body.before.append(f"Pack {output}_pack;")
            body.elements.append(f"{output}_pack.v[j] = {element};")
            body.after.append(f"store({output}_to + at * VEC, {output}_pack);")
        lines = [
            "const unsigned first = blockIdx.x * (BLOCK * UNROLL) + threadIdx.x;",
            *writer.lines,
            *self._chunk(body),
            *self._tail(writer),
        ]
        text = "".join(f"  {line}\n" for line in lines)
        functions = memory_functions(streaming=self._is_streaming)
        functions += self._spelling.functions(operations(self._program.values))
        return functions + self._head() + text + "}\n"

    def element(self, load: Load) -> str:
        """Return the present element of a FULL or COLUMN tensor."""
        return f"{load.name}_in[at]" if self._is_tail else self._body.read(load)

    def first(self, load: Load) -> str:
        """Refuse: there are no rows."""
        raise AssertionError(f"{load.name}: a flat program has no rows")

    def row(self, load: Load) -> str:
        """Return a scalar tensor's element."""
        return f"{load.name}_in[0]"

    @property
    def has_tail(self) -> bool:
        """Whether packs need not cover all: with columns they divide a row, and so everything."""
        return all(load.extent is Extent.FULL for load in self._body.loads)

    def _tail(self, writer: RowWriter) -> list[str]:
        """Return what the first threads do with the last TAIL elements, which fill no pack."""
        if not self.has_tail:
            return []
        self._is_tail = True
        names: dict[Value, str] = {}
        lines = ["const size_t at = (size_t)packs * VEC + threadIdx.x;"]
        for output, value in self._program.outputs:
            element = writer.element(value, names, lines)
            lines.append(f"{output}_to[at] = {element};")
        return loop("", "if (TAIL > 0 && blockIdx.x == 0 && threadIdx.x < TAIL)", lines)

    def _head(self) -> str:
        text = ",\n    ".join([*self._program.parameters, "unsigned packs"])
        return f'extern "C" __global__ void __launch_bounds__(BLOCK) {KERNEL}(\n    {text}) {{\n'

    def _chunk(self, body: PackBody) -> list[str]:
        """Return UNROLL steps, all loaded before the first is used."""
        each = "for (int u = 0; u < UNROLL; ++u)"
        here, inside = "const size_t at = first + u * BLOCK;", "if (at < packs)"
        last = frozenset(load.name for load in body.loads) if self._is_streaming else frozenset()
        loads = body.load_lines(full="at * VEC", column="at % (COLS / VEC) * VEC", last=last)
        return [
            *body.declarations,
            *loop(_UNROLL, each, [here, *loop("", inside, loads)]),
            *loop(_UNROLL, each, [here, *loop("", inside, body.statements())]),
        ]
