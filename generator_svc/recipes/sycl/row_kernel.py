"""Emits a row program as one SYCL kernel in the style that a genome chooses."""

from generator_svc.recipes.cpp_operations import NEUTRAL
from generator_svc.recipes.expression import Extent, Load, Reduce, Value, operations
from generator_svc.recipes.genome import Genome
from generator_svc.recipes.row_program import RowProgram
from generator_svc.recipes.row_schedule import RowPass, schedule
from generator_svc.recipes.row_writer import RowWriter
from generator_svc.recipes.sycl.row_loop import VECTOR, RowLoop
from generator_svc.recipes.sycl.spelling import (
    kernel_head,
    reduce_over,
    sycl_spelling,
)

KERNEL = "fused_rows"

_COLLECTIVE = {"item": "", "vector": "", "group": "item.get_group()", "sub_group": "lanes"}


class SyclRowKernel:
    """The text of one kernel; used once.

    Args:
        program: What it computes.
        genome: How.
    """

    def __init__(self, program: RowProgram, genome: Genome) -> None:
        self._program = program
        self._genes = dict(genome.genes)
        self._spelling = sycl_spelling(self._genes)
        self._keep = self._genes.get("keep", "nothing")
        self._loop = RowLoop(kind=self._genes["loop"], who=self._genes["who"])
        self._writer = RowWriter(self._spelling, self, columns="(float)cols")
        self._lines = self._writer.lines
        self._type = "float"

    def text(self) -> str:
        """Return the device code."""
        passes = schedule(self._program, keep=self._keep != "nothing")
        has_sub_groups = self._genes["who"] in ("group", "sub_group")
        head = kernel_head(KERNEL, self._parameters(), sub_group=has_sub_groups)
        self._lines.extend(self._place())
        if self._keep == "private" and any(p.keeps for p in passes):
            self._lines.append(f"float kept[{self._loop.kept_count}];")
        for row_pass in passes:
            self._emit_pass(row_pass)
        self._writer.store_rows(self._program.outputs, "lane == 0")
        body = "".join(f"  {line}\n" for line in self._lines)
        functions = self._spelling.functions(operations(self._program.values))
        vectors = "#include <kf/vector.hpp>\n" if self._is_vector else ""
        return vectors + functions + head + body + "}\n"

    @property
    def uses_local(self) -> bool:
        """Whether it takes a local accessor of `rows` rows as its last parameter."""
        return self._keep == "local"

    def _parameters(self) -> list[str]:
        parameters = self._program.parameters
        parameters += ["int rows", "int cols"]
        if self.uses_local:
            parameters.append("sycl::local_accessor<float, 1> staged")
        return parameters

    def _place(self) -> list[str]:
        """Return the lines that say which row and which part of it is ours."""
        lines = ["const auto item = syclext::this_work_item::get_nd_item<1>();"]
        if self._genes["who"] in ("item", "vector"):
            lines += [
                "const int row = item.get_global_id(0), lane = 0, held = item.get_local_id(0);"
            ]
        elif self._genes["who"] == "group":
            lines += ["const int row = item.get_group(0), lane = item.get_local_id(0), held = 0;"]
        else:
            lines += [
                "const auto lanes = item.get_sub_group();",
                "const int lane = lanes.get_local_id()[0], held = lanes.get_group_id()[0];",
                "const int row = item.get_group(0) * ROWS + held;",
            ]
        lines.append("if (row >= rows) return;")
        lines.append("const size_t start = (size_t)row * cols;")
        if self.uses_local:
            lines.append("float* kept = &staged[held * cols];")
        return lines

    def _emit_pass(self, row_pass: RowPass) -> None:
        sums = {r: self._writer.fresh("acc") for r in row_pass.reductions}
        self._writer.prepare(row_pass.wanted(self._program.values), row_pass.available)
        width = self._loop.accumulators
        for reduction, name in sums.items():
            self._lines.append(f"{self._loop.element_type} {name}[{width}];")
            self._lines.append(
                f"for (int u = 0; u < {width}; ++u) {name}[u] = {NEUTRAL[reduction.kind]};"
            )
            if self._is_vector:
                self._lines.append(f"float {name}_tail = {NEUTRAL[reduction.kind]};")
        self._lines.extend(
            self._loop.lines(lambda part, kind: self._body(row_pass, sums, part, kind))
        )
        for reduction, name in sums.items():
            total = self._writer.constant(self._total(reduction, name))
            self._writer.define(reduction, total)

    def _total(self, reduction: Reduce, name: str) -> str:
        """Add up the accumulators of this work-item, then those of all that share the row."""
        kind, width = reduction.kind, self._loop.accumulators
        accumulate = self._spelling.accumulate
        first = accumulate(kind, f"{name}[0]", f"{name}[u]", self._loop.element_type)
        self._lines.append(f"for (int u = 1; u < {width}; ++u) {first}")
        if self._is_vector:
            lane = accumulate(kind, f"{name}_tail", f"{name}[0][j]")
            self._lines.append(f"for (int j = 0; j < 16; ++j) {lane}")
            return f"{name}_tail"
        collective = _COLLECTIVE[self._genes["who"]]
        return reduce_over(collective, kind, f"{name}[0]") if collective else f"{name}[0]"

    @property
    def _is_vector(self) -> bool:
        return self._genes["who"] == "vector"

    def _body(self, row_pass: RowPass, sums: dict[Reduce, str], part: str, kind: str) -> list[str]:
        """Return the statements for element `i` of type `kind`; `part` is its accumulator."""
        lines: list[str] = []
        names: dict[Value, str] = {}
        self._type = kind
        if row_pass.available is not None:
            names[row_pass.available] = self._read(*self._kept())
        for reduction, name in sums.items():
            element = self._writer.element(reduction.operand, names, lines, kind)
            is_tail = self._is_vector and kind == "float"
            target = f"{name}_tail" if is_tail else f"{name}[{part}]"
            lines.append(self._spelling.accumulate(reduction.kind, target, element, kind))
        if row_pass.is_last:
            for output, value in self._program.outputs:
                if value.extent is Extent.FULL:
                    element = self._writer.element(value, names, lines, kind)
                    lines.append(self._store(output, element))
        if row_pass.keeps is not None:
            element = self._writer.element(row_pass.keeps, names, lines, kind)
            lines.append(self._write(*self._kept(), element))
        self._type = "float"
        return lines

    def _kept(self) -> tuple[str, str]:
        """Return (array, index) of what is kept of element `i`."""
        if self._keep == "output":
            return f"({self._program.outputs[0][0]}_to + start)", "i"
        is_own = self._keep == "private" and not self._is_vector and self._genes["who"] != "item"
        return "kept", "slot" if is_own else "i"

    def _read(self, array: str, index: str) -> str:
        is_vector = self._type == VECTOR
        return f"kf::load({array}, kf::Whole{{{index}}})" if is_vector else f"{array}[{index}]"

    def _write(self, array: str, index: str, value: str) -> str:
        if self._type == VECTOR:
            return f"kf::store({array}, kf::Whole{{{index}}}, {value});"
        return f"{array}[{index}] = {value};"

    def _store(self, output: str, value: str) -> str:
        row = f"({output}_to + start)"
        if self._genes["store"] == "streaming" and self._type == VECTOR:
            return f"kf::stream({row}, kf::Whole{{i}}, {value});"
        return self._write(row, "i", value)

    def element(self, load: Load) -> str:
        """Return the present element of a FULL or COLUMN tensor."""
        return self._read(self._array(load), "i")

    def first(self, load: Load) -> str:
        """Return the element of such a tensor at the row's first column."""
        return f"{self._array(load)}[0]"

    def row(self, load: Load) -> str:
        """Return the element of a ROW or SCALAR tensor."""
        return f"{load.name}_in[{'row' if load.extent is Extent.ROW else '0'}]"

    def _array(self, load: Load) -> str:
        is_full = load.extent is Extent.FULL
        return f"({load.name}_in + start)" if is_full else f"{load.name}_in"
