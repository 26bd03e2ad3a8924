"""Emits a row program as one CUDA kernel in which a team of threads shares a row.

The style comes from a genome; sizes are macros of the launch plan: COLS, VEC, TEAM, ROWS, UNROLL.
"""

from generator_svc.recipes.cpp_operations import NEUTRAL
from generator_svc.recipes.cuda.pack_body import PackBody, loop
from generator_svc.recipes.cuda.spelling import (
    cuda_spelling,
    memory_functions,
    over_team,
    team_functions,
)
from generator_svc.recipes.expression import Extent, Load, Reduce, Value, operations
from generator_svc.recipes.genome import Genome
from generator_svc.recipes.row_program import RowProgram
from generator_svc.recipes.row_schedule import RowPass, schedule
from generator_svc.recipes.row_writer import RowWriter

KERNEL = "fused_rows"

_LOWEST = "-3.402823466e+38f"
"""Starts a running maximum: unlike -infinity, its distance to itself is a number."""

_UNROLL = "#pragma unroll"

_HERE = "((base + u) * TEAM + lane) * VEC"
"""Column of a step's pack: the packs of a team are neighbours."""


class CudaRowKernel:
    """The text of one kernel; used once.

    Args:
        program: What it computes.
        genome: How.
    """

    def __init__(self, program: RowProgram, genome: Genome) -> None:
        self._program = program
        self._genes = dict(genome.genes)
        self._who = self._genes["who"]
        self._keep = self._genes.get("keep", "nothing")
        self._is_streaming = self._genes["cache"] == "streaming"
        self._spelling = cuda_spelling(self._genes)
        self._writer = RowWriter(self._spelling, self, columns="(float)COLS")
        self._body = PackBody(prefix="", subscript="")
        self._behind: list[str] = []
        self._places = 0

    def text(self) -> str:
        """Return the device code."""
        outputs = self._program.values
        passes = schedule(self._program, keep=self._keep != "nothing", keep_loads=True)
        reads = [p.reads(outputs) for p in passes]
        lines = self._writer.lines
        lines.extend(self._place(has_kept=any(p.keeps for p in passes)))
        for index, row_pass in enumerate(passes):
            later = frozenset().union(*reads[index + 1 :])
            last = reads[index] - later if self._is_streaming else frozenset()
            self._emit_pass(row_pass, f"p{index}", last)
        ours = "lane == 0" if self._who == "block" else "lane == 0 && ours"
        self._writer.store_rows(self._program.outputs, ours)
        body = "".join(f"  {line}\n" for line in lines)
        return self._functions() + self._head() + body + "}\n"

    def element(self, load: Load) -> str:
        """Return the present element of a FULL or COLUMN tensor."""
        return self._body.read(load)

    def first(self, load: Load) -> str:
        """Return the element of such a tensor at the row's first column."""
        return f"{load.name}_in[{'start' if load.extent is Extent.FULL else '0'}]"

    def row(self, load: Load) -> str:
        """Return the element of a ROW or SCALAR tensor."""
        return f"{load.name}_in[{'row' if load.extent is Extent.ROW else '0'}]"

    def _functions(self) -> str:
        used = operations(self._program.values)
        kinds = used & {"sum", "max", "min"}
        if "exp_sum" in used:
            kinds |= {"sum", "max"}
        team = "tree" if self._genes.get("team") == "tree" else self._who
        return (
            memory_functions(streaming=self._is_streaming)
            + (team_functions(self._spelling, kinds, team) if kinds and team != "thread" else "")
            + self._spelling.functions(used)
        )

    def _head(self) -> str:
        text = ",\n    ".join([*self._program.parameters, "int rows"])
        bounds = "__launch_bounds__(TEAM * ROWS)"
        return f'extern "C" __global__ void {bounds} {KERNEL}(\n    {text}) {{\n'

    def _place(self, *, has_kept: bool) -> list[str]:
        """Return the lines that say which row and which part of it is ours."""
        lines = ["constexpr int steps = (COLS + TEAM * VEC - 1) / (TEAM * VEC);"]
        if self._keep != "registers":
            lines.append("constexpr bool whole = COLS % (TEAM * VEC * UNROLL) == 0;")
        if self._who == "block":
            lines.append("const int lane = threadIdx.x, row = blockIdx.x;")
        else:
            lines += [
                "const int lane = threadIdx.x % TEAM;",
                "const int wanted = blockIdx.x * ROWS + threadIdx.x / TEAM;",
                # Whole warps take part in shuffles; what is beyond the last row stores nothing.
                "const bool ours = wanted < rows;",
                "const int row = ours ? wanted : rows - 1;",
            ]
        lines.append("const size_t start = (size_t)row * COLS;")
        if not has_kept:
            return lines
        size = "(steps + UNROLL - 1) / UNROLL * UNROLL"
        if self._keep == "registers":
            lines.append(f"Pack kept[{size}];")
        else:
            lines.append("extern __shared__ float4 staged[];")
            lines.append("Pack* kept = reinterpret_cast<Pack*>(staged);")
        return lines

    def _emit_pass(self, row_pass: RowPass, prefix: str, last: frozenset[str]) -> None:
        wanted = row_pass.wanted(self._program.values)
        self._writer.prepare(wanted, row_pass.available)
        self._body = body = PackBody(prefix=prefix, subscript="[u]")
        names: dict[Value, str] = {}
        if row_pass.available is not None:
            names[row_pass.available] = self._kept()
        totals = self._accumulate(row_pass, body, names)
        if row_pass.is_last:
            for output, value in self._program.outputs:
                if value.extent is Extent.FULL:
                    self._store(output, value, body, names)
        if row_pass.keeps is not None:
            element = self._writer.element(row_pass.keeps, names, body.elements)
            body.elements.append(f"{self._kept()} = {element};")
        self._writer.lines.extend(self._loop(body, last))
        self._writer.lines.extend(self._behind)
        self._behind.clear()
        for reduction, total in totals:
            self._writer.define(reduction, self._writer.constant(total))

    def _loop(self, body: PackBody, last: frozenset[str]) -> list[str]:
        """Return the loop over the row: UNROLL packs are loaded before the first is used."""
        each = "for (int u = 0; u < UNROLL; ++u)"
        here, is_unrolled = f"const int i = {_HERE};", self._keep == "registers"
        covered = "(base + u + 1) * TEAM * VEC <= COLS" if is_unrolled else "whole"
        inside = f"if ({covered} || i < COLS)"
        loads = body.load_lines(full="start + i", column="i", last=last)
        chunk = [*body.declarations]
        if loads:
            chunk += loop(_UNROLL, each, [here, *loop("", inside, loads)])
        chunk += loop(_UNROLL, each, [here, *loop("", inside, body.statements())])
        # Registers have no index: a loop that keeps rows in them is unrolled as a whole.
        pragma = _UNROLL if is_unrolled else "#pragma unroll 1"
        return loop(pragma, "for (int base = 0; base < steps; base += UNROLL)", chunk)

    def _kept(self) -> str:
        slot = "base + u" if self._keep == "registers" else "(base + u) * TEAM + lane"
        return f"kept[{slot}].v[j]"

    def _store(self, output: str, value: Value, body: PackBody, names: dict[Value, str]) -> None:
        element = self._writer.element(value, names, body.elements)
        body.before.append(f"Pack {output}_pack;")
        body.elements.append(f"{output}_pack.v[j] = {element};")
        store = f"store({output}_to + start + i, {output}_pack);"
        body.after.append(store if self._who == "block" else f"if (ours) {store}")

    def _accumulate(
        self, row_pass: RowPass, body: PackBody, names: dict[Value, str]
    ) -> list[tuple[Reduce, str]]:
        """Add the reductions to the body; return the text of each one's total."""
        totals: list[tuple[Reduce, str]] = []
        tops: dict[Value, str] = {}
        for reduction in row_pass.reductions:
            if reduction.kind == "exp_sum":
                tops[reduction.operand], total = self._online(reduction.operand, body, names)
                totals.append((reduction, total))
        for reduction in row_pass.reductions:
            if reduction.kind == "max" and reduction.operand in tops:
                totals.append((reduction, tops[reduction.operand]))
            elif reduction.kind != "exp_sum":
                totals.append((reduction, self._total(reduction, body, names)))
        return totals

    def _total(self, reduction: Reduce, body: PackBody, names: dict[Value, str]) -> str:
        part = self._writer.fresh("part")
        self._writer.lines.append(f"float {part} = {NEUTRAL[reduction.kind]};")
        element = self._writer.element(reduction.operand, names, body.elements)
        body.elements.append(self._spelling.accumulate(reduction.kind, part, element))
        return self._over_team(reduction.kind, part)

    def _online(self, operand: Value, body: PackBody, names: dict[Value, str]) -> tuple[str, str]:
        """Add a running maximum and the sum of exponentials about it; return the totals.

        The maximum moves once a pack; all before it is rescaled then.
        """
        writer, exp = self._writer, self._spelling.names["exp"]
        top, part, pack = writer.fresh("top"), writer.fresh("part"), writer.fresh("pack")
        writer.lines.append(f"float {top} = {_LOWEST}, {part} = 0.0f;")
        element = writer.element(operand, names, body.elements)
        body.before += [f"Pack {pack};", f"float {pack}_top = {top};"]
        higher = self._spelling.accumulate("max", f"{pack}_top", element)
        body.elements += [f"{pack}.v[j] = {element};", higher]
        body.after += [
            f"{part} *= {exp}({top} - {pack}_top);",
            f"{top} = {pack}_top;",
            *loop(_UNROLL, "for (int j = 0; j < VEC; ++j)",
                  [f"{part} += {exp}({pack}.v[j] - {top});"]),
        ]  # fmt: skip
        whole = writer.fresh("top")
        self._behind.append(f"const float {whole} = {self._over_team('max', top)};")
        return whole, self._over_team("sum", f"{part} * {exp}({top} - {whole})")

    def _over_team(self, kind: str, value: str) -> str:
        if self._who == "thread":
            return value
        self._places += 1
        return over_team(kind, self._places, value)
