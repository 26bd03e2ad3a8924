"""Plans with all that the language has, and what the interpreter makes of them, as plain values."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator_svc.judge.describe import describe_task
from kernel_foundry.plan import LIBRARY_OPS, bind, default_configuration, kernels, parse, split
from kernel_foundry.plan.configuration import constants
from kernel_foundry.plan.from_admission import name_table
from kernel_foundry.plan.names import NameTable, ScalarName, TensorName
from kernel_foundry.plan.sequence import (
    BufferArgument,
    Clear,
    Launch,
    LaunchSequence,
    LibraryCall,
    LocalArgument,
    Operand,
    TensorOperand,
)
from kernel_foundry.plan.signature import KernelSignature
from kernel_foundry.plan.tree import Plan
from kernel_foundry.plan.values import DeviceLimits
from kernel_foundry.sdk.export.runtime import plan as runtime
from kernel_foundry.sdk.task_file import read_task

LIMITS = DeviceLimits(
    compute_units=132, sub_group_size=32, shared_bytes=232448, max_block=1024, memory_bytes=1 << 34
)
NAMES = NameTable(
    tensors=(
        TensorName(name="x", dtype="float32", shape=(6, 1000), role="input", path=""),
        TensorName(name="w", dtype="float32", shape=(40, 1000), role="parameter", path="l.weight"),
        TensorName(name="out", dtype="float32", shape=(6, 40), role="output", path=""),
    ),
    scalars=(ScalarName(name="eps", value=1e-5), ScalarName(name="stride", value=(2, 1))),
)
CODE = """
extern "C" __global__ void turn(const float* w, float* to, int n) {}
extern "C" __global__ void run(const float* a, const float* b, float* out, long long n, float f) {}
"""
PLANS = {
    "helpers and loops": """
TUNE = {"BLOCK": [128, 256], "TYPE": ["float", "double"]}
CONST = {"COLS": "x.shape[-1] // 2 * BLOCK", "DEEP": "COLS + 1"}
WHERE = ["BLOCK <= 256", "COLS > 3 and DEEP in (COLS + 1, 7)"]
STEP = 4 * 8

def grid_of(t, block):
    if t.ndim == 2 and not t.numel() < 4:
        return cdiv(t.numel(), block), 1
    return (1, 1)

def twice(a, b, out, n):
    for i in range(2):
        run[grid_of(a, BLOCK), (BLOCK, 1)](a, b, out, n + i, f=eps_of(i))

def eps_of(i):
    return 0.5 if i == 0 else -1.0 / 3

def launch(x, w, out):
    names, do = x.shape
    rows = names
    rows += min(1, 2) + max((3, len(x.shape))) - abs(-2) + int(2.9) % 2
    parts = zeros((rows, STEP), float32)
    if x.dtype == torch.float32 and rows != 0:
        twice(x, parts, out, next_pow2(rows) ** 2)
    else:
        run[1, 1](x, w, out, 0, 0.0)
    for i, j in ((1, 2), (3, 4)):
        require(i < j)
        assert i + j > 0, "sums"
        run[(i, j, 1), device.max_block // 8, 1024](x, params["l.weight"], out, n=i * j, f=sqrt(4))
    return
""",
    "prepare": """
def prepare(w):
    cols = w.size(0)
    spare = empty(8, "float32")
    turned = empty(w.shape, w.dtype)
    turn[1, 32](w, spare, 8)
    turn[cdiv(w.numel(), 32), 32](w, turned, w.stride(0))

def launch(x, turned, cols, out):
    run[cols, 32](x, turned, out, cols, exp(0) + log2(8))
""",
    "words of the text's own": """
names = 4

def sum_of(device, range):
    return device + range * names

def launch(x, w, out):
    do = sum_of(range=2, device=x.shape[0])
    run[do, 1](x, w, out, names, 1.0)
""",
    "library": """
def launch(x, w, eps, stride, out):
    bare = empty((6, 40), float32)
    turn[1, 32](w, bare, stride[0])
    y = ops.linear(x, w, bias=None)
    ops.mm(x, w, out=bare) if False else None
    run[1, 32](y, bare, out, stride[-1], eps)
""".replace("    ops.mm(x, w, out=bare) if False else None\n", ""),
}
EXAMPLES = sorted(Path(__file__).parents[2].joinpath("examples").glob("*.md"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCase:
    """A plan with what it is bound to, and what the interpreter binds."""

    plan: Plan
    names: NameTable
    signatures: tuple[KernelSignature, ...]
    macros: dict[str, Any]
    bound: Any
    """As `plain_bound`."""


def plan_case(text: str, code: str, language: str, names: NameTable) -> PlanCase:
    plan = parse(text)
    chosen = default_configuration(plan)
    macros = {**chosen, **constants(plan, names, chosen, LIMITS)}
    signatures = kernels(code, language, macros)
    bound = bind(
        plan, signatures, names=names, configuration=chosen, device=LIMITS, language=language,
        library_ops=tuple(LIBRARY_OPS),
    )  # fmt: skip
    return PlanCase(
        plan=plan, names=names, signatures=signatures, macros=macros, bound=plain_bound(bound)
    )


def example_cases(path: Path) -> list[PlanCase]:
    parts = split(path.read_text())
    task = read_task(path.with_name(f"{path.name.partition('.')[0]}.py"))
    tables = [name_table(w.tensors, w.scalars) for w in describe_task(task).workloads]
    language = parts.language.value
    return [plan_case(parts.plan, parts.device_code, language, names) for names in tables]


def plain_bound(sequence: LaunchSequence) -> Any:
    def argument(item: Any) -> Any:
        if isinstance(item, BufferArgument):
            return item.index
        if isinstance(item, LocalArgument):
            return item.element_bytes, item.count
        return runtime.packed(item.ctype, item.value)

    def operand(item: Operand) -> Any:
        return ("at", item.index) if isinstance(item, TensorOperand) else item

    def step(item: Any) -> Any:
        if isinstance(item, Launch):
            return (item.kernel, item.grid, item.block, item.dimensions, item.shared_bytes,
                    item.cooperative, tuple(map(argument, item.arguments)))  # fmt: skip
        if isinstance(item, Clear):
            return "clear", item.buffer
        assert isinstance(item, LibraryCall)
        values = (*item.arguments, *(value for _, value in item.keywords))
        return item.op, tuple(map(operand, values)), item.output

    buffers = [(b.kind, b.dtype, b.shape) for b in sequence.buffers]
    return buffers, [step(s) for s in sequence.prepare], [step(s) for s in sequence.steps]
