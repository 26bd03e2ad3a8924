"""A plan as a Python function launches what the plan's interpreter launches."""

from pathlib import Path
from typing import Any

import pytest

from kernel_foundry.plan import parse
from kernel_foundry.sdk.export.plan_function import plan_function
from kernel_foundry.sdk.export.runtime import plan as runtime
from kernel_foundry.sdk.export.torch_file import kernel_declaration
from tests.export.plan_cases import CODE, EXAMPLES, NAMES, PLANS, PlanCase, example_cases, plan_case


def recorded(case: PlanCase) -> Any:
    written = plan_function(case.plan, "written", case.names, ())
    scope: dict[str, Any] = vars(runtime) | {}
    exec(written, scope)
    tensors = case.names.tensors
    buffers = {t.name: runtime.Buffer("tensor", t.name, t.dtype, t.shape) for t in tensors}
    by_path = {t.path: buffers[t.name] for t in tensors if t.path}
    limits = runtime.Limits(132, 32, 232448, 1024)
    declared = {k.name: runtime.Kernel(*kernel_declaration(k)) for k in case.signatures}
    recorder = runtime.Recorder(declared, limits, by_path)
    given = buffers | {s.name: s.value for s in case.names.scalars}
    found, prepare, launch = scope["written"](recorder, limits, given)
    assert found == case.macros
    made = {} if prepare is None else prepare()
    recorder.end_prepare()
    launch(made)
    return plain_recorded(recorder.finish())


def plain_recorded(sequence: runtime.Sequence) -> Any:
    def operand(item: Any) -> Any:
        return ("at", item.buffer) if isinstance(item, runtime.Operand) else item

    def step(item: Any) -> Any:
        if isinstance(item, runtime.Launch):
            return tuple(item)
        if isinstance(item, runtime.Clear):
            return "clear", item.buffer
        values = (*item.arguments, *item.keywords.values())
        return item.function.__name__, tuple(map(operand, values)), item.output

    buffers = [(b.kind, b.dtype, b.shape) for b in sequence.buffers]
    return buffers, [step(s) for s in sequence.prepare], [step(s) for s in sequence.steps]


@pytest.mark.parametrize("text", PLANS.values(), ids=PLANS)
def test_the_function_launches_what_the_interpreter_does(text: str) -> None:
    case = plan_case(text, CODE, "cuda", NAMES)
    assert recorded(case) == case.bound


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_written_as_they_are_bound(path: Path) -> None:
    for case in example_cases(path):
        assert recorded(case) == case.bound


def test_sizes_that_the_plan_refuses_have_no_kernel() -> None:
    text = "def launch(x, w, out):\n    require(x.shape[0] > 6)\n    run[1, 1](x, w, out, 1, 1.0)\n"
    written = plan_function(parse(text), "written", NAMES, ())
    scope: dict[str, Any] = vars(runtime) | {}
    exec(written, scope)
    given = {t.name: runtime.Buffer("tensor", t.name, t.dtype, t.shape) for t in NAMES.tensors}
    limits = runtime.Limits(1, 32, 1024, 1024)
    recorder = runtime.Recorder({}, limits, {})
    launch = scope["written"](recorder, limits, given)[2]
    with pytest.raises(runtime.NoKernelError, match=r"x\.shape\[0\] > 6"):
        launch({})


@pytest.mark.parametrize(
    ("element", "value"), [("int32", 2**31), ("uint8", -1), ("int64", 0.5), ("float16", 1e6)]
)
def test_a_number_that_does_not_fit_is_passed_to_no_kernel(element: str, value: float) -> None:
    with pytest.raises(runtime.NoKernelError, match="is no"):
        runtime.packed(element, value)
