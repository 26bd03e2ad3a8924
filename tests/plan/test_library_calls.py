"""`ops.` calls: shapes as torch computes them, arguments checked, and only what the task allows."""

from __future__ import annotations

import ast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry.plan import (
    LIBRARY_OPS,
    LaunchSequence,
    LibraryCall,
    LibraryOp,
    NameTable,
    PlanError,
    TensorName,
    TensorOperand,
    bind,
    kernels,
    parse,
)
from kernel_foundry.plan.library import check_call
from kernel_foundry.plan.values import PlanTensor, Value

CODE = """
extern "C" __global__ void touch(float* x) {}
extern "C" __global__ void copy(const float* x, float* out) {}
"""


def _tensor(shape: tuple[int, ...], dtype: str = "float32", name: str = "t") -> PlanTensor:
    return PlanTensor(kind="tensor", name=name, dtype=dtype, shape=shape)


def _torch_shape(op: LibraryOp, call: str) -> tuple[int, ...]:
    """Return the shape that torch itself computes, on no device."""
    module = {"torch": torch, "torch.nn.functional": torch.nn.functional}[op.module]
    arguments, keywords = _values(call, lambda s: torch.empty(s, device="meta"))
    return tuple(getattr(module, op.name)(*arguments, **keywords).shape)


def _values(call: str, make):
    """Return the arguments of `call`; a bracketed list stands for a tensor of that shape."""
    tree = ast.parse(f"f({call})", mode="eval").body
    assert isinstance(tree, ast.Call)

    def value(node):
        found = ast.literal_eval(node)
        return make(found) if isinstance(found, list) else found

    return (
        [value(node) for node in tree.args],
        {word.arg: value(word.value) for word in tree.keywords},
    )


def _own_shape(name: str, call: str) -> tuple[int, ...]:
    arguments, keywords = _values(call, lambda shape: _tensor(tuple(shape)))
    return check_call(name, tuple(arguments), keywords, (name,)).shape


CALLS = [
    ("linear", "[4, 7], [3, 7]"),
    ("linear", "[7], [3, 7], [3]"),
    ("linear", "[2, 5, 4, 7], [3, 7], bias=[3]"),
    ("matmul", "[7], [7]") ,
    ("matmul", "[3, 7], [7]"),
    ("matmul", "[7], [7, 4]"),
    ("matmul", "[7], [5, 7, 4]"),
    ("matmul", "[5, 1, 3, 7], [6, 7, 4]"),
    ("matmul", "[3, 7], [6, 7, 4]"),
    ("mm", "[3, 7], [7, 4]"),
    ("bmm", "[2, 3, 7], [2, 7, 4]"),
    ("addmm", "[4], [3, 7], [7, 4]"),
    ("addmm", "[3, 4], [3, 7], [7, 4], beta=0.5, alpha=2"),
    ("baddbmm", "[2, 1, 4], [2, 3, 7], [2, 7, 4], alpha=0.5"),
    ("conv1d", "[2, 6, 20], [8, 3, 5], None, 2, 1, 2, 2"),
    ("conv2d", "[2, 6, 20, 21], [8, 6, 3, 3], [8], stride=(2, 1), padding=1"),
    ("conv2d", "[2, 6, 20, 21], [8, 6, 4, 3], padding='same', dilation=2"),
    ("conv2d", "[2, 6, 20, 21], [8, 6, 4, 3], padding='valid', stride=3"),
    ("conv3d", "[2, 4, 9, 10, 11], [6, 2, 3, 2, 1], stride=(1, 2, 3), padding=(1, 0, 1), groups=2"),
    ("conv_transpose1d", "[2, 6, 9], [6, 4, 3], stride=3, output_padding=2"),
    ("conv_transpose2d", "[2, 6, 9, 8], [6, 4, 3, 5], [8], stride=2, padding=1, output_padding=1, "
     "groups=2, dilation=2"),
    ("conv_transpose3d", "[1, 2, 3, 4, 5], [2, 3, 3, 3, 3], stride=(1, 2, 3)"),
    ("max_pool1d", "[2, 6, 20], 3, stride=2, ceil_mode=True"),
    ("max_pool2d", "[2, 6, 20, 21], 3, 2, 1, 2"),
    ("max_pool2d", "[2, 6, 20, 21], (3, 2), stride=(3, 4), padding=(1, 1), ceil_mode=True"),
    ("max_pool3d", "[2, 6, 9, 10, 11], 2"),
    ("avg_pool1d", "[2, 6, 20], 3, count_include_pad=False"),
    ("avg_pool2d", "[2, 6, 20, 21], 3, stride=2, padding=1, ceil_mode=True"),
    ("avg_pool3d", "[2, 6, 9, 10, 11], (2, 3, 4), 1"),
    ("adaptive_avg_pool1d", "[2, 6, 20], 3"),
    ("adaptive_avg_pool2d", "[2, 6, 20, 21], (1, 1)"),
    ("adaptive_avg_pool3d", "[2, 6, 9, 10, 11], (1, 2, 3)"),
    ("scaled_dot_product_attention", "[2, 4, 9, 8], [2, 4, 11, 8], [2, 4, 11, 6]"),
    ("scaled_dot_product_attention", "[2, 4, 9, 8], [2, 4, 9, 8], [2, 4, 9, 8], is_causal=True, "
     "scale=0.5"),
    ("scaled_dot_product_attention", "[2, 4, 9, 8], [2, 4, 9, 8], [2, 4, 9, 8], attn_mask=[9, 9]"),
    ("scaled_dot_product_attention", "[2, 4, 9, 8], [2, 2, 9, 8], [2, 2, 9, 8], enable_gqa=True"),
    ("scaled_dot_product_attention", "[4, 9, 8], [4, 9, 8], [4, 9, 8]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call"), CALLS)
def test_shape_is_the_one_of_torch(name, call) -> None:
    """The shape computed here is the shape that the library will return."""
    assert _own_shape(name, call) == _torch_shape(LIBRARY_OPS[name], call)


def test_every_call_is_compared_with_torch() -> None:
    """No rule goes untested, and every name and default is one of torch's own."""
    assert {name for name, _ in CALLS} == set(LIBRARY_OPS)


@settings(max_examples=200)
@given(
    size=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    stride=st.integers(1, 4),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    dilation=st.integers(1, 3),
    extra=st.integers(0, 2),
    is_ceil=st.booleans(),
)
def test_windows_slide_as_in_torch(size, kernel, stride, padding, dilation, extra, is_ceil) -> None:
    """Convolutions and pools agree with torch on the shape, and on whether there is one."""
    # The meta device computes what the library refuses: extra rows nobody can fill.
    extra = min(extra, max(stride, dilation) - 1)
    source, weight = [2, 4, *size], [4, 4, *kernel]
    window = f"stride={stride}, padding={padding}, dilation={dilation}"
    for name, call in (
        ("conv2d", f"{source}, {weight}, {window}"),
        ("conv_transpose2d", f"{source}, {weight}, {window}, output_padding={extra}"),
        ("max_pool2d", f"{source}, {kernel}, {window}, ceil_mode={is_ceil}"),
        ("avg_pool2d", f"{source}, {kernel}, {stride}, {padding}, ceil_mode={is_ceil}"),
    ):
        try:
            expected = _torch_shape(LIBRARY_OPS[name], call)
        except RuntimeError:
            expected = ()
        if expected and min(expected) > 0:
            assert _own_shape(name, call) == expected
        else:
            with pytest.raises(PlanError):
                _own_shape(name, call)


@pytest.mark.parametrize(
    ("name", "call", "message"),
    [
        ("linear", "[4, 7], [3, 8]", "last size of input t (4, 7) must be in_features"),
        ("linear", "[4, 7], [3, 7], [4]", "bias must have the shape (3,), not t (4,)"),
        ("linear", "[4, 7]", "weight is missing: write ops.linear(input, weight, bias=None)"),
        ("linear", "[4, 7], [3, 7], None, 1", "too many arguments"),
        ("linear", "[4, 7], [3, 7], weight=[3, 7]", "too many arguments"),
        ("linear", "[4, 7], [3, 7], tf32=True", "has no keyword 'tf32'"),
        ("linear", "4, [3, 7]", "input must be a tensor, not 4"),
        ("linear", "[0, 7], [3, 7]", "has no elements"),
        ("matmul", "[3, 7], [8, 4]", "the inner sizes of"),
        ("matmul", "[2, 3, 7], [3, 7, 4]", "do not broadcast"),
        ("bmm", "[3, 7], [7, 4]", "input must have 3 dimensions"),
        ("bmm", "[2, 3, 7], [3, 7, 4]", "different numbers of matrices"),
        ("addmm", "[5], [3, 7], [7, 4]", "does not broadcast to the product (3, 4)"),
        ("addmm", "[4], [3, 7], [7, 4], beta='a'", "beta must be a number"),
        ("addmm", "[4], [3, 7], [7, 4], 1", "too many arguments"),
        ("addmm", "[4], [3, 7], [7, 4], alpha=None", "alpha must be a number"),
        ("conv2d", "[2, 6, 9], [8, 6, 3, 3]", "input must have 4 dimensions"),
        ("conv2d", "[2, 5, 9, 9], [8, 6, 3, 3]", "has 5 channels"),
        ("conv2d", "[2, 6, 9, 9], [8, 3, 3, 3], groups=3", "has 6 channels"),
        ("conv2d", "[2, 6, 9, 9], [8, 2, 3, 3], groups=3", "does not divide 8"),
        ("conv2d", "[2, 6, 2, 2], [8, 6, 3, 3]", "the result would be empty"),
        ("conv2d", "[2, 6, 9, 9], [8, 6, 3, 3], stride=0", "stride must be 1 or more"),
        ("conv2d", "[2, 6, 9, 9], [8, 6, 3, 3], stride=(1, 1, 1)", "a tuple of 2, not 3"),
        ("conv2d", "[2, 6, 9, 9], [8, 6, 3, 3], padding=-1", "padding must be 0 or more"),
        ("conv2d", "[2, 6, 9, 9], [8, 6, 3, 3], padding=1.5", "padding must be a whole number"),
        ("conv2d", "[2, 6, 9, 9], [8, 6, 3, 3], padding='half'", 'padding is "same", "valid"'),
        ("conv2d", "[2, 6, 9, 9], [8, 6, 3, 3], padding='same', stride=2", "needs stride 1"),
        ("conv2d", "[2, 6, 9, 9], [8, 6, 3, 3], padding=10**30", "below 2 ** 31"),
        ("conv_transpose2d", "[2, 6, 9, 9], [6, 8, 3, 3], output_padding=1", "smaller than stride"),
        ("conv_transpose2d", "[2, 5, 9, 9], [6, 8, 3, 3]", "as many channels"),
        ("max_pool2d", "[2, 6, 9, 9], 3, padding=2", "at most half of kernel_size"),
        ("max_pool2d", "[2, 6, 9, 9], 3, ceil_mode=1", "ceil_mode must be True or False"),
        ("scaled_dot_product_attention", "[2, 4, 9, 8], [2, 4, 9, 7], [2, 4, 9, 8]", "last size"),
        ("scaled_dot_product_attention", "[2, 4, 9, 8], [2, 4, 9, 8], [2, 4, 8, 8]", "in length"),
        ("scaled_dot_product_attention", "[2, 4, 9, 8], [2, 2, 9, 8], [2, 2, 9, 8]", "enable_gqa"),
        ("scaled_dot_product_attention", "[9, 8], [9, 8], [9, 8]", "at least 3"),
        ("scaled_dot_product_attention", "[2, 9, 8], [2, 9, 8], [2, 9, 8], dropout_p=0.5",
         "may not be random"),
        ("scaled_dot_product_attention", "[2, 9, 8], [2, 9, 8], [2, 9, 8], scale=1e999",
         "scale must be finite"),
        ("scaled_dot_product_attention", "[2, 9, 8], [2, 9, 8], [2, 9, 8], [9, 8]",
         "does not broadcast to (2, 9, 9)"),
        ("scaled_dot_product_attention", "[2, 9, 8], [2, 9, 8], [2, 9, 8], [9, 9], is_causal=True",
         "exclude each other"),
    ],
)  # fmt: skip
def test_wrong_call_is_refused(name, call, message) -> None:
    """The refusal names the call, the argument and what it takes."""
    call = call.replace("10**30", str(10**30))
    with pytest.raises(PlanError) as caught:
        _own_shape(name, call)
    assert message in caught.value.message


def test_tensors_have_one_floating_dtype() -> None:
    """Mixed and whole-number dtypes are refused; a mask may be bool."""
    half = _tensor((3, 7), "float16")
    with pytest.raises(PlanError, match="one dtype: input float32, weight float16"):
        check_call("linear", (_tensor((4, 7)), half), {}, ("linear",))
    whole = _tensor((3, 7), "int32")
    with pytest.raises(PlanError, match="not int32"):
        check_call("linear", (whole, whole), {}, ("linear",))
    rows = _tensor((2, 9, 8), "bfloat16")
    name = "scaled_dot_product_attention"
    mask: dict[str, Value] = {"attn_mask": _tensor((9, 9), "bool")}
    assert check_call(name, (rows, rows, rows), mask, (name,)).dtype == "bfloat16"


@pytest.fixture
def bind_ops(device):
    """Bind a plan of the body given, on a linear layer, with library calls allowed."""
    roles = {"x": "input", "weight": "parameter", "bias": "parameter", "out": "output"}
    shapes = {"x": (4, 8), "weight": (6, 8), "bias": (6,), "out": (4, 6)}
    names = NameTable(
        tensors=tuple(
            TensorName(name=n, dtype="float32", shape=shapes[n], role=role, path=n)
            for n, role in roles.items()
        )
    )

    def run(body: str, allowed: tuple[str, ...] = ("linear", "mm")) -> LaunchSequence:
        text = "def launch(x, weight, bias, out):\n" + "".join(
            f"    {line}\n" for line in body.split("\n")
        )
        return bind(
            parse(text),
            kernels(CODE, "cuda"),
            names=names,
            configuration={},
            device=device,
            language="cuda",
            library_ops=allowed,
        )

    return run


def test_library_call_becomes_a_step(bind_ops) -> None:
    """Required operands by position, others by keyword, the result in a buffer of its own."""
    sequence = bind_ops("y = ops.linear(x, weight=weight, bias=None)\ncopy[1, 1](y, out)")
    call = sequence.steps[0]
    assert call == LibraryCall(
        op="linear",
        arguments=(TensorOperand(index=0, shape=(4, 8)), TensorOperand(index=1, shape=(6, 8))),
        keywords=(("bias", None),),
        output=2,
        line=2,
    )
    result = sequence.buffers[2]
    assert (result.kind, result.name, result.shape) == ("result", "result0", (4, 6))
    assert sequence.library_calls == (call,)


def test_result_is_a_tensor_like_any_other(bind_ops) -> None:
    """It has a shape, feeds further calls, and may be written in place."""
    sequence = bind_ops(
        "y = ops.linear(x, weight)\ntouch[y.shape[0], y.size(1)](y)\n"
        "z = ops.linear(y, empty((6, y.shape[1]), y.dtype))\ncopy[1, 1](z, out)"
    )
    assert [buffer.kind for buffer in sequence.buffers].count("result") == 2
    assert sequence.steps[1].grid == (4, 1, 1)


def test_out_takes_the_result(bind_ops) -> None:
    """`out=` names memory that is there already."""
    sequence = bind_ops(
        "h = empty(x.shape, float32)\ncopy[1, 1](x, h)\nops.linear(h, weight, bias, out=out)"
    )
    call = sequence.steps[-1]
    assert sequence.buffers[call.output].name == "out"
    assert call.keywords[0][0] == "bias"


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("ops.linear(x, weight, out=out)", "bind", "launch launches no kernel"),
        ("h = empty(8, float32)\ntouch[1, 1](h)\nops.linear(x, weight, out=out)", "bind",
         "the output out comes from library calls alone"),
        ("touch[1, 1](out)\nops.linear(x, weight, out=out)", "bind", "library calls alone"),
        ("touch[1, 1](x)\nops.linear(x, weight, out=out)", "bind", "library calls alone"),
        ("touch[1, 1](weight)\nops.linear(x, weight, out=out)", "bind", "library calls alone"),
        ("copy[1, 1](out, x)", "bind", "passed to no kernel that may write it"),
        ("ops.linear(x, weight, out=x)", "bind", "the result is float32 (4, 6), but out is"),
        ("h = zeros((8, 8), float32)\nops.mm(x, h, out=x)", "bind", "out x is also an operand"),
        ("h = zeros((6, 6), float32)\nops.mm(h, weight, out=weight)", "bind", "also an operand"),
        ("h = zeros((6, 6), float32)\nk = zeros((6, 8), float32)\nops.mm(h, k, out=weight)",
         "bind", "leaves inputs and weights as they are"),
        ("ops.linear(x, weight, out=3)", "bind", "out must be a tensor, not 3"),
        ("ops.linear(x, params)", "bind", "weight cannot be params"),
        ("ops.linear(x, device)", "bind", "weight cannot be device"),
        ("ops.bmm(x, weight)", "policy", "this task allows linear, mm"),
        ("ops.linear(x, weight, **x)", "policy", "** is not available"),
        ("for i in range(1025): ops.linear(x, weight)", "limit", "at most 1024 library calls"),
        ("for i in range(1024): y = ops.linear(empty((500, 8), float32), weight)", "limit",
         "scratch of"),
        ("y = ops.linear(ops, weight)", "policy", "a library call is y = ops.NAME"),
        ("y = ops.linear(x, weight).T", "policy", "pass the tensor and an integer offset"),
        ("y = ops.linear(x, None + 1)", "policy", "None is not available"),
    ],
)  # fmt: skip
def test_plan_that_leaves_the_work_to_the_library_is_refused(body, kind, message, bind_ops) -> None:
    """Every output depends on a kernel that the plan launches, and nothing else is written."""
    with pytest.raises(PlanError) as caught:
        bind_ops(body)
    assert message in caught.value.message
    assert caught.value.kind == kind


def test_library_calls_are_for_launch_alone(bind_ops, device) -> None:
    text = 'CONST = {"AB": "ops.mm(x, x)"}\ndef launch(x, out):\n    copy[1, 1](x, out)\n'
    names = NameTable(
        tensors=(TensorName(name="x", dtype="float32", shape=(4, 4), role="input", path="x"),)
    )
    with pytest.raises(PlanError, match="only available in launch, prepare"):
        bind(
            parse(text), kernels(CODE, "cuda"), names=names, configuration={}, device=device,
            language="cuda", library_ops=("mm",),
        )  # fmt: skip
