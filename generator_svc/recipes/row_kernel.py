"""Emits a row program as one SYCL kernel in the style that a genome chooses."""

from generator_svc.recipes.expression import (
    Apply,
    ColumnCount,
    Extent,
    Literal,
    Load,
    Reduce,
    Value,
    operations,
)
from generator_svc.recipes.genome import Genome
from generator_svc.recipes.row_loop import VECTOR, RowLoop
from generator_svc.recipes.row_program import RowProgram
from generator_svc.recipes.row_schedule import RowPass, schedule
from generator_svc.recipes.sycl_text import (
    NEUTRAL,
    SyclText,
    accumulate,
    kernel_head,
    literal,
    reduce_over,
)

KERNEL = "fused_rows"

_COLLECTIVE = {"item": "", "vector": "", "group": "item.get_group()", "sub_group": "lanes"}


class RowKernel:
    """The text of one kernel; used once.

    Args:
        program: What it computes.
        genome: How.
    """

    def __init__(self, program: RowProgram, genome: Genome) -> None:
        self._program = program
        self._genes = dict(genome.genes)
        self._spell = SyclText(
            polynomial_exp=self._genes.get("exp") == "polynomial",
            polynomial_erf=self._genes.get("erf") == "polynomial",
            is_vector=self._genes["who"] == "vector",
        )
        self._keep = self._genes.get("keep", "nothing")
        self._loop = RowLoop(kind=self._genes["loop"], who=self._genes["who"])
        self._lines: list[str] = []
        self._rows: dict[Value, str] = {}
        self._count = 0
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
        self._emit_row_outputs()
        body = "".join(f"  {line}\n" for line in self._lines)
        return self._spell.functions(operations(self._program.values)) + head + body + "}\n"

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of the tensors it reads, in order of its parameters."""
        found: dict[str, None] = {}
        seen: set[Value] = set()

        def visit(value: Value) -> None:
            if value in seen:
                return
            seen.add(value)
            if isinstance(value, Load):
                found[value.name] = None
            for argument in value.arguments:
                visit(argument)

        for value in self._program.values:
            visit(value)
        return tuple(found)

    @property
    def uses_local(self) -> bool:
        """Whether it takes a local accessor of `rows` rows as its last parameter."""
        return self._keep == "local"

    def _parameters(self) -> list[str]:
        parameters = [f"const float* __restrict__ {name}_in" for name in self.tensors]
        parameters += [f"float* __restrict__ {name}_to" for name, _ in self._program.outputs]
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
        if self._genes["store"] == "streaming":
            lines.append("const bool lines = cols % 16 == 0;")
        return lines

    def _emit_pass(self, row_pass: RowPass) -> None:
        sums = {r: self._fresh("acc") for r in row_pass.reductions}
        self._prepare_rows(row_pass)
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
            self._rows[reduction] = self._constant(self._total(reduction, name), "row")

    def _total(self, reduction: Reduce, name: str) -> str:
        """Add up the accumulators of this work-item, then those of all that share the row."""
        kind, width = reduction.kind, self._loop.accumulators
        first = accumulate(kind, f"{name}[0]", f"{name}[u]")
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
            element = self._element(reduction.operand, names, lines)
            is_tail = self._is_vector and kind == "float"
            target = f"{name}_tail" if is_tail else f"{name}[{part}]"
            lines.append(accumulate(reduction.kind, target, element))
        if row_pass.is_last:
            for output, value in self._program.outputs:
                if value.extent is Extent.FULL:
                    lines.append(self._store(output, self._element(value, names, lines)))
        if row_pass.keeps is not None:
            lines.append(self._write(*self._kept(), self._element(row_pass.keeps, names, lines)))
        self._type = "float"
        return lines

    def _kept(self) -> tuple[str, str]:
        """Return (array, index) of what is kept of element `i`."""
        if self._keep == "output":
            return f"({self._program.outputs[0][0]}_to + start)", "i"
        is_own = self._keep == "private" and not self._is_vector and self._genes["who"] != "item"
        return "kept", "slot" if is_own else "i"

    def _read(self, array: str, index: str) -> str:
        return f"load({array}, {index})" if self._type == VECTOR else f"{array}[{index}]"

    def _write(self, array: str, index: str, value: str) -> str:
        if self._is_vector:
            return f"store({array}, {index}, {value});"
        return f"{array}[{index}] = {value};"

    def _store(self, output: str, value: str) -> str:
        row = f"({output}_to + start)"
        if self._genes["store"] == "streaming":
            return f"stream({row}, i, {value}, lines);"
        return self._write(row, "i", value)

    def _element(self, value: Value, names: dict[Value, str], lines: list[str]) -> str:
        """Return the name of `value` at element i, adding what computes it."""
        if value in names:
            return names[value]
        if value.extent in (Extent.SCALAR, Extent.ROW):
            return self._row(value)
        if isinstance(value, Load):
            is_full = value.extent is Extent.FULL
            array = f"({value.name}_in + start)" if is_full else f"{value.name}_in"
            text = self._read(array, "i")
        else:
            assert isinstance(value, Apply)
            operands = [self._element(o, names, lines) for o in value.operands]
            text = self._spell.apply(value.operation, operands, self._type)
        names[value] = self._fresh("v")
        lines.append(f"const {self._type} {names[value]} = {text};")
        return names[value]

    def _prepare_rows(self, row_pass: RowPass) -> None:
        """Compute before the loop what does not change in it."""
        wanted: list[Value] = [r.operand for r in row_pass.reductions]
        if row_pass.is_last:
            wanted += [v for v in self._program.values if v.extent is Extent.FULL]
        if row_pass.keeps is not None:
            wanted.append(row_pass.keeps)
        seen: set[Value] = {row_pass.available} if row_pass.available is not None else set()
        while wanted:
            value = wanted.pop()
            if value in seen:
                continue
            seen.add(value)
            if value.extent in (Extent.SCALAR, Extent.ROW):
                self._row(value)
            else:
                wanted.extend(value.arguments)

    def _row(self, value: Value) -> str:
        """Return the name of a value that is the same for the whole row."""
        if value in self._rows:
            return self._rows[value]
        if isinstance(value, Literal):
            return literal(value.number)
        if isinstance(value, ColumnCount):
            return "(float)cols"
        if isinstance(value, Load):
            text = f"{value.name}_in[{'row' if value.extent is Extent.ROW else '0'}]"
        elif isinstance(value, Reduce):
            assert value.kind == "first"
            text = self._first(value.operand)
        else:
            assert isinstance(value, Apply)
            text = self._row_operation(value)
        self._rows[value] = self._constant(text, "row")
        return self._rows[value]

    def _row_operation(self, value: Apply) -> str:
        return self._spell.apply(value.operation, [self._row(o) for o in value.operands], "float")

    def _first(self, operand: Value) -> str:
        """Return the operand at the row's first element, as a nested scope would compute it."""
        lines: list[str] = []
        name = self._element(operand, {}, lines)
        first = self._fresh("first")
        inner = " ".join(lines)
        self._lines.append(f"float {first}; {{ const int i = 0; {inner} {first} = {name}; }}")
        return first

    def _emit_row_outputs(self) -> None:
        for output, value in self._program.outputs:
            if value.extent is Extent.ROW:
                self._lines.append(f"if (lane == 0) {output}_to[row] = {self._row(value)};")

    def _constant(self, text: str, prefix: str) -> str:
        name = self._fresh(prefix)
        self._lines.append(f"const float {name} = {text};")
        return name

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"
