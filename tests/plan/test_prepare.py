"""`prepare` runs once for each set of weights: what it may take, make and hand on."""

from __future__ import annotations

import pytest

from kernel_foundry.plan import (
    DeviceLimits,
    Launch,
    LaunchSequence,
    LibraryCall,
    NameTable,
    NotMeant,
    PlanError,
    ScalarArgument,
    ScalarName,
    TensorName,
    bind,
    kernels,
    parse,
)

CODE = """
extern "C" __global__ void transpose(const float* w, float* wt, int rows) {}
extern "C" __global__ void product(const float* x, const float* wt, float* out, int n) {}
extern "C" __global__ void update(float* wt, float* out) {}
"""
PREPARE = """\
def prepare(weight, scale):
    rows, cols = weight.shape
    wt = empty((cols, rows), weight.dtype)
    transpose[cdiv(rows, 32), 32](weight, wt, rows)
"""
LAUNCH = """\
def launch(x, wt, rows, out):
    product[1, 32](x, wt, out, rows)
"""


@pytest.fixture
def bind_prepare(device: DeviceLimits):
    """Bind a plan on a linear layer."""

    def tensor(name: str, shape: tuple[int, ...], role) -> TensorName:
        return TensorName(name=name, dtype="float32", shape=shape, role=role, path=name)

    names = NameTable(
        tensors=(
            tensor("x", (4, 8), "input"),
            tensor("weight", (6, 8), "parameter"),
            tensor("mean", (6,), "buffer"),
            tensor("out", (4, 6), "output"),
        ),
        scalars=(ScalarName(name="scale", value=0.5),),
    )

    def run(text: str) -> LaunchSequence:
        return bind(
            parse(text),
            kernels(CODE, "cuda"),
            names=names,
            configuration={},
            device=device,
            language="cuda",
            library_ops=("linear", "mm"),
        )

    return run


def test_assigned_names_become_parameters_of_launch(bind_prepare) -> None:
    """Tensors are handed on as prepared buffers, numbers as numbers."""
    sequence = bind_prepare(PREPARE + LAUNCH)
    (first,) = sequence.prepare
    (second,) = sequence.steps
    assert isinstance(first, Launch)
    assert isinstance(second, Launch)
    assert [(b.kind, b.name) for b in sequence.buffers] == [
        ("tensor", "weight"),
        ("prepared", "prepared0"),
        ("tensor", "x"),
        ("tensor", "out"),
    ]
    assert first.arguments[1] == second.arguments[1]
    assert second.arguments[3] == ScalarArgument(ctype="int32", value=6)
    assert sequence.prepared_bytes == 192
    assert sequence.scratch_bytes == 0
    assert sequence.kernels == ("transpose", "product")


def test_scratch_of_prepare_stays_there(bind_prepare) -> None:
    """What launch does not use is scratch, and does not count as prepared."""
    sequence = bind_prepare(
        PREPARE
        + "    big = zeros((64, 8), float32)\n    transpose[1, 1](weight, big, 1)\n"
        + LAUNCH
    )
    assert sequence.prepared_bytes == 192
    assert sequence.scratch_bytes == 64 * 8 * 4


def test_library_result_may_be_handed_on(bind_prepare) -> None:
    """Its address is known before, so the result is put there."""
    sequence = bind_prepare(
        "def prepare(weight):\n    eye = zeros((8, 8), float32)\n    w = ops.mm(weight, eye)\n"
        "def launch(x, w, out):\n    product[1, 32](x, w, out, 1)\n"
    )
    call = sequence.prepare[-1]
    assert isinstance(call, LibraryCall)
    assert sequence.buffers[call.output].kind == "prepared"


def test_helpers_params_and_conditions_work(bind_prepare) -> None:
    """Prepare is a function like launch: helpers, `params`, early return, `require`."""
    text = (
        "def laid_out(w):\n    wt = empty(w.shape, w.dtype)\n"
        "    transpose[1, 1](w, wt, 1)\n    return wt\n"
        'def prepare(scale):\n    wt = laid_out(params["weight"])\n    n = 7\n'
        "    if scale < 1:\n        return wt\n    n = 8\n"
        "def launch(x, wt, n, out):\n    product[1, 1](x, wt, out, n)\n"
    )
    step = bind_prepare(text).steps[0]
    assert isinstance(step, Launch)
    assert step.arguments[3] == ScalarArgument(ctype="int32", value=7)
    with pytest.raises(NotMeant, match="scale > 1"):
        bind_prepare(PREPARE + "    require(scale > 1)\n" + LAUNCH)


REFUSALS = [
    (PREPARE.replace("scale", "x") + LAUNCH, "bind",
     "prepare cannot have the parameter 'x': it runs once for each set of weights, before there "
     "is an input; it takes parameters, buffers and scalars"),
    (PREPARE.replace("scale", "out") + LAUNCH, "bind", "before there is an output"),
    (PREPARE.replace("scale", "nope") + LAUNCH, "bind", "prepare has the parameter 'nope', which"),
    (PREPARE + "    n = x.shape\n" + LAUNCH, "bind", "'x' must be listed as a parameter"),
    (PREPARE + LAUNCH.replace("rows", "lines"), "bind", "launch has the parameter 'lines'"),
    (PREPARE + "    mean = 3\n" + LAUNCH.replace("rows", "mean"), "bind",
     "'mean', which prepare assigns and the task has too: choose another name in prepare"),
    (PREPARE + "    scale = 3\n" + LAUNCH.replace("rows", "scale"), "bind", "has too"),
    (PREPARE + LAUNCH + "    update[1, 1](wt, out)\n", "bind",
     "scratch0 comes from prepare, so launch may only read it: declare the kernel's parameter "
     "const"),
    (PREPARE + LAUNCH + "    h = zeros((8, 6), float32)\n    ops.mm(h, zeros((6, 6), float32), "
     "out=wt)\n", "bind", "launch may only read it"),
    (PREPARE.replace("weight, wt, rows)", "weight, weight, rows)") + LAUNCH, "bind",
     "a tensor that it never fills"),
    (PREPARE.replace("cols, rows)", "cols, rows + 2)") + LAUNCH, "limit",
     "prepare hands 256 bytes to launch; at most 240 are allowed: 1.25 × the 192 bytes of the "
     "tensors that it reads"),
    ("def prepare():\n    wt = zeros(1, float32)\n    rows = 1\n" + LAUNCH, "limit",
     "prepare hands 4 bytes to launch; at most 0 are allowed"),
    (PREPARE + "def launch(x, out):\n    ops.linear(x, x, out=out)\n", "bind", "(4, 4)"),
    (PREPARE + "def launch(x, weight, out):\n    ops.linear(x, weight, out=out)\n", "bind",
     "launch launches no kernel"),
    (PREPARE + PREPARE + LAUNCH, "policy", "prepare is defined twice"),
    (PREPARE + "def launch(x, out):\n    prepare(x)\n", "policy", "no function 'prepare'"),
    (PREPARE.replace("scale", "scale=1") + LAUNCH, "policy", "only plain parameters"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message"), REFUSALS)
def test_prepare_that_does_more_is_refused(text, kind, message, bind_prepare) -> None:
    """For layout, not for work: no input, no state, no tables."""
    with pytest.raises(PlanError) as caught:
        bind_prepare(text)
    assert message in caught.value.message
    assert caught.value.kind == kind


def test_a_quarter_more_is_room_for_padding(bind_prepare) -> None:
    """The limit itself is allowed."""
    text = PREPARE.replace("cols, rows)", "60,)") + LAUNCH
    assert bind_prepare(text).prepared_bytes == 240
