"""A plan becomes a flat launch sequence."""

from __future__ import annotations

import pickle

import pytest

from kernel_foundry.plan import (
    BufferArgument,
    BufferSpec,
    Clear,
    Launch,
    LaunchSequence,
    LocalArgument,
    PlanError,
    ScalarArgument,
    kernels,
    parse,
)

HEAD = "def launch(x, out):\n"


def _value(bind_text, expression: str, extra: str = "") -> float:
    """Return what an expression of launch evaluates to, as the kernel would get it."""
    text = (
        "PAIR = (3, 4)\ndef twice(n):\n    return n * 2\ndef both(a, b):\n    return a, b\n"
        "def launch(x, mask, norm_weight, half_weight, out, eps, n_head, stride, mode):\n"
        f"{extra}    scale[1, 1](x, out, 1, {expression})\n"
    )
    step = bind_text(text).steps[-1]
    assert isinstance(step, Launch)
    argument = step.arguments[3]
    assert isinstance(argument, ScalarArgument)
    return argument.value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3 - 4 / 8", 6.5),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("2 ** 10", 1024),
        ("2 ** -1", 0.5),
        ("+3", 3),
        ("not 0", 1),
        ("1 if 2 > 1 else 0", 1),
        ("1 < 2 <= 2 != 3", 1),
        ("1 < 2 > 5", 0),
        ("0 or 7", 7),
        ("3 and 5", 5),
        ("0 and 1 // 0", 0),
        ("1 or 1 // 0", 1),
        ("2 in (1, 2)", 1),
        ("2 not in (1, 2)", 0),
        ("PAIR[0] + PAIR[-1]", 7),
        ("(1, 2, 3)[1:][0]", 2),
        ("len(x.shape[:-1] + (1, 2))", 3),
        ("x.shape == (6, 1000)", 1),
        ("x.shape[-1]", 1000),
        ("x.size(0)", 6),
        ("x.size()[1]", 1000),
        ("x.ndim", 2),
        ("out.numel()", 6000),
        ("x.stride(0)", 1000),
        ("x.stride(-1)", 1),
        ("x.stride() == (1000, 1)", 1),
        ('out.dtype == "float32"', 1),
        ("x.dtype == float32", 1),
        ("x.dtype == torch.float32", 1),
        ("x.dtype == torch.float", 1),
        ("half_weight.dtype != torch.half", 0),
        ("mask.dtype in (float32, bfloat16)", 0),
        ('mode == "mean"', 1),
        ("stride[0]", 2),
        ("n_head", 4),
        ('params["norm.weight"].numel()', 1000),
        ("cdiv(7, 2)", 4),
        ("cdiv(-7, 2)", -3),
        ("min(3, 1, 2)", 1),
        ("max(x.shape)", 1000),
        ("abs(-2.5)", 2.5),
        ("int(2.9)", 2),
        ("len('abc')", 3),
        ("next_pow2(1000)", 1024),
        ("next_pow2(1024)", 1024),
        ("next_pow2(0)", 1),
        ("sqrt(9)", 3),
        ("exp(0)", 1),
        ("log2(8)", 3),
        ("twice(n=4)", 8),
        ("both(1, b=2)[1]", 2),
        ("device.compute_units", 2),
        ("device.sub_group_size", 16),
        ("device.shared_bytes", 49152),
        ("device.max_block", 1024),
    ],
)
def test_expression_has_its_python_value(expression, expected, bind_text) -> None:
    """Expressions mean what they mean in Python."""
    assert expected == _value(bind_text, expression)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    n = m = 3\n", 3),
        ("    n = 1\n    n += 4\n", 5),
        ("    (a, b), n = (1, 2), 3\n    n = a + b + n\n", 6),
        ("    n = 0\n    for i in range(4):\n        n += i\n", 6),
        ("    n = 0\n    for i in range(10, 0, -5):\n        n += i\n", 15),
        ("    n = 0\n    for i, j in ((1, 2), (3, 4)):\n        n += i * j\n", 14),
        ("    n = 0\n    for d in x.shape:\n        n += d\n", 1006),
        ("    if eps > 1:\n        n = 1\n    elif eps > 0:\n        n = 2\n    else:\n"
         "        n = 3\n", 2),
        ('    """Doc."""\n    pass\n    require(eps > 0)\n    assert n_head == 4, "heads"\n'
         "    n = 9\n", 9),
    ],
)  # fmt: skip
def test_statements_have_their_python_meaning(body, expected, bind_text) -> None:
    assert expected == _value(bind_text, "n", body)


def test_launch_becomes_a_flat_step(bind_text) -> None:
    """Buffers are numbered by first use; arguments follow the kernel's parameters."""
    sequence = bind_text(
        HEAD + "    scale[(3, 1), 64](x, factor=1, n=x.shape[1], out=out)\n    return out\n"
    )
    assert sequence.buffers == (
        BufferSpec(kind="tensor", name="x", dtype="float32", shape=(6, 1000), size_bytes=24_000),
        BufferSpec(kind="tensor", name="out", dtype="float32", shape=(6, 1000), size_bytes=24_000),
    )
    assert sequence.steps == (
        Launch(
            kernel="scale",
            grid=(3, 1, 1),
            block=(64, 1, 1),
            dimensions=1,
            shared_bytes=0,
            cooperative=False,
            arguments=(
                BufferArgument(index=0),
                BufferArgument(index=1),
                ScalarArgument(ctype="int32", value=1000),
                ScalarArgument(ctype="float32", value=1.0),
            ),
            line=2,
        ),
    )
    assert sequence.kernels == ("scale",)
    assert pickle.loads(pickle.dumps(sequence)) == sequence


def test_scratch_and_clear_steps(bind_text) -> None:
    """`zeros` clears at every run, where it stands; unused `empty` costs no buffer."""
    sequence = bind_text(
        HEAD
        + "    unused = empty(8, x.dtype)\n    a = zeros((2, 8), dtype=torch.float32)\n"
        + "    scale[1, 1](x, a, 1, 1)\n    scale[1, 1](a, out, 1, 1)\n"
    )
    scratch = sequence.buffers[0]
    assert (scratch.kind, scratch.shape, scratch.size_bytes) == ("scratch", (2, 8), 64)
    assert sequence.steps[0] == Clear(buffer=0, size_bytes=64)
    assert sequence.scratch_bytes == 64
    assert [type(step) for step in sequence.steps] == [Clear, Launch, Launch]


def test_helper_may_launch_and_return(bind_text) -> None:
    """Helpers launch, return early, and take tensors."""
    sequence = bind_text(
        "def step(source, target, times):\n    for i in range(times):\n"
        "        if i == 2:\n            return i\n        scale[1, 1](source, target, i, 1)\n"
        "def launch(x, out):\n    step(x, out, 5)\n    n = step(x, out, times=1 + 4)\n"
        "    scale[n, 1](x, out, 1, 1)\n"
    )
    assert [step.grid[0] for step in sequence.steps] == [1, 1, 1, 1, 2]
    assert sequence.steps[0].line == 5


def test_return_ends_launch(bind_text) -> None:
    """`return` in launch ends it; its value is ignored, whatever it is."""
    sequence = bind_text(
        HEAD + "    scale[1, 1](x, out, 1, 1)\n    return None, [out]\n    nothing[1, 1]()\n"
    )
    assert len(sequence.steps) == 1


def test_out0_is_the_only_output(bind_text) -> None:
    """`out0` and `out` name the same tensor when there is one output."""
    sequence = bind_text("def launch(x, out0):\n    scale[1, 1](x, out0, 1, 1)\n")
    assert sequence.buffers[1].name == "out"


def test_local_memory_follows_the_accessor(bind_text) -> None:
    """`local(n, dtype)` becomes a local argument; SYCL dimensions come from the kernel."""
    text = HEAD + "    tile[(2, 3), (8, 4)](x, out, local(32, float32), n=7)\n"
    step = bind_text(text).steps[0]
    assert isinstance(step, Launch)
    assert (step.grid, step.block, step.dimensions) == ((2, 3, 1), (8, 4, 1), 2)
    assert step.arguments[2] == LocalArgument(element_bytes=4, count=32)
    assert step.arguments[3] == ScalarArgument(ctype="uint64", value=7)


def test_cuda_launch_takes_shared_bytes_and_cooperative(bind_text) -> None:
    """The third and fourth part of a launch."""
    text = HEAD + '    scale[4, (32, 2), 1024, "cooperative"](x, out, 1, 1)\n'
    step = bind_text(text, language="cuda").steps[0]
    assert isinstance(step, Launch)
    assert (step.shared_bytes, step.cooperative, step.dimensions) == (1024, True, 3)


def test_cluster_divides_the_grid(bind_text) -> None:
    """`__cluster_dims__` is read through macros; the grid must be a multiple of it."""
    code = (
        'extern "C" __global__ void __cluster_dims__(SPLIT, 2) __launch_bounds__(64)\n'
        "pair(const __nv_bfloat16* __restrict__ w, float* out) {}\n"
        'extern "C" __global__ __cluster_dims__(SPLIT * 2) void odd(float* out) {}\n'
        'extern "C" __cluster_dims__(16) __global__ void many(float* out) {}\n'
    )
    first, odd, many = kernels(code, "cuda", {"SPLIT": 4})
    assert (first.cluster, odd.cluster, many.cluster) == ((4, 2, 1), None, (16, 1, 1))
    assert (first.max_threads, odd.max_threads) == (64, None)
    assert [(p.name, p.ctype, p.is_const) for p in first.parameters] == [
        ("w", "bfloat16", True),
        ("out", "float32", False),
    ]

    def run(launch: str) -> LaunchSequence:
        text = f'TUNE = {{"SPLIT": [4]}}\ndef launch(out):\n    {launch}\n'
        return bind_text(text, language="cuda", code=code.replace("__nv_bfloat16", "void"))

    step = run("pair[(8, 2, 3), 64](out, out)").steps[0]
    assert isinstance(step, Launch)
    assert step.grid == (8, 2, 3)
    with pytest.raises(PlanError, match=r"the grid \(8, 1, 1\) of pair must be a multiple"):
        run("pair[8, 64](out, out)")
    with pytest.raises(PlanError, match="a cluster holds 1 to 8 blocks"):
        run("many[16, 64](out)")


LAUNCH_REFUSALS = [
    ("sycl", "scale[0, 1](x, out, 1, 1)", "the grid of scale must be at least 1, not 0"),
    ("sycl", "scale[1, -1](x, out, 1, 1)", "the block of scale must be at least 1"),
    ("sycl", "scale[6 / 2, 1](x, out, 1, 1)", "use // or cdiv instead of /"),
    ("sycl", "scale[(1, 1, 1, 1), 1](x, out, 1, 1)", "has 1 to 3 sizes, not 4"),
    ("sycl", "scale[x, 1](x, out, 1, 1)", "must be a whole number, not the tensor x"),
    ("sycl", "scale[(2, 2), 1](x, out, 1, 1)", "the kernel is nd_range_kernel<1>"),
    ("sycl", "scale[1, 2048](x, out, 1, 1)", "2048 threads; the device takes at most 1024"),
    ("sycl", "scale[2 ** 30, 2](x, out, 1, 1)", "let each one handle several elements"),
    ("sycl", "scale[1, 1, 64](x, out, 1, 1)", "pass local(n, dtype)"),
    ("sycl", 'scale[1, 1, 0, "cooperative"](x, out, 1, 1)', "not available in SYCL"),
    ("cuda", "scale[1, 1, 50000](x, out, 1, 1)", "the device has 0 to 49152"),
    ("cuda", "scale[1, 1, -1](x, out, 1, 1)", "the device has 0 to 49152"),
    ("cuda", 'scale[1, 1, 0, "grid"](x, out, 1, 1)', 'fourth part of a launch is "cooperative"'),
    ("cuda", "scale[(1, 65536), 1](x, out, 1, 1)", "grid y of scale is 65536"),
    ("cuda", "scale[1, (1, 1, 128)](x, out, 1, 1)", "block z of scale is 128"),
    ("cuda", "scale[1, 512](x, out, 1, 1)", "has 512 threads; its __launch_bounds__ says at most "
     "256"),
    ("cuda", "n = local(1, float32)", "not available in CUDA C++: declare extern __shared__"),
    ("sycl", "scales[1, 1](x, out, 1, 1)", "there is no kernel 'scales' in the device code; found: "
     "scale, tile"),
    ("sycl", "scale[1, 1](x, out, 1)", "takes 4 argument(s), not 3: missing factor of scale("),
    ("sycl", "scale[1, 1](x, out, 1, 1, 1)", "takes 4 argument(s), not 5"),
    ("sycl", "scale[1, 1](x, out, 1, m=1)", "scale has no parameter 'm'"),
    ("sycl", "scale[1, 1](x, out, 1, n=1)", "'n' is given twice"),
    ("sycl", "scale[1, 1](1, out, 1, 1)", "takes a tensor, not 1"),
    ("sycl", "scale[1, 1](x, out, x, 1)", "takes a number, not the tensor x"),
    ("sycl", "scale[1, 1](x, out, 'a', 1)", "takes a number, not the string 'a'"),
    ("sycl", "scale[1, 1](x, out, 2 ** 31, 1)", "2147483648 does not fit the parameter 'int n', "
     "which holds -2147483648 to 2147483647"),
    ("sycl", "scale[1, 1](x, out, 1.5, 1)", "takes a whole number, not 1.5"),
    ("sycl", "scale[1, 1](x, out, 1e999, 1)", "takes a whole number, not inf"),
    ("sycl", "scale[1, 1](x, out, 1, 1e39)", "it would be infinite"),
    ("sycl", "tile[1, 1](x, out, 32, 1)", "takes local(n, dtype), not 32"),
    ("sycl", "tile[1, 1](x, out, local(4, int8), 1)", "write local(n, float32), not int8"),
    ("sycl", "tile[1, 1](x, out, local(13000, float32), 1)", "52000 bytes of local memory"),
    ("sycl", "tile[1, 1](x, out, local(4, float32), -1)", "does not fit the parameter 'size_t n'"),
    ("sycl", "scale[1, 1](x, local(1, float32), 1, 1)", "is not a local accessor"),
    ("cuda", "sums[1, 1](x, x, x, 1)", "points to float16, but x holds float32"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "statement", "message"), LAUNCH_REFUSALS)
def test_launch_that_does_not_fit_is_refused(language, statement, message, bind_text) -> None:
    """The refusal names the line, the parameter and the limit."""
    with pytest.raises(PlanError) as caught:
        bind_text(f"{HEAD}    {statement}\n", language=language)
    assert message in caught.value.message
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("declared", "given", "expected"),
    [
        ("const void* p", "x", BufferArgument(index=1)),
        ("const float4* p", "x", BufferArgument(index=1)),
        ("const uint8_t* p", "mask", BufferArgument(index=1)),
        ("const bool* p", "mask", BufferArgument(index=1)),
        ("sycl::half* p", "half_weight", BufferArgument(index=1)),
        ("bool p", "True", ScalarArgument(ctype="bool", value=True)),
        ("bool p", "1", ScalarArgument(ctype="bool", value=True)),
        ("int p", "True", ScalarArgument(ctype="int32", value=1)),
        ("int p", "4.0", ScalarArgument(ctype="int32", value=4)),
        ("unsigned char p", "255", ScalarArgument(ctype="uint8", value=255)),
        ("long long p", "-2 ** 63", ScalarArgument(ctype="int64", value=-(2**63))),
        ("double p", "1e300", ScalarArgument(ctype="float64", value=1e300)),
        ("float p", "-1e999", ScalarArgument(ctype="float32", value=float("-inf"))),
        ("sycl::local_accessor<sycl::float4, 1> p", "local(8, float32)",
         LocalArgument(element_bytes=16, count=2)),
    ],
)  # fmt: skip
def test_argument_takes_the_declared_type(declared, given, expected, bind_text) -> None:
    """Numbers take the C type; pointers accept what has the same element."""
    code = (
        'extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>)) '
        f"void k(float* out, {declared}) {{}}"
    )
    text = f"def launch(x, mask, half_weight, out):\n    k[1, 1](out, {given})\n"
    step = bind_text(text, code=code).steps[0]
    assert isinstance(step, Launch)
    assert step.arguments[1] == expected
    assert type(getattr(step.arguments[1], "value", 0)) is type(getattr(expected, "value", 0))


@pytest.mark.parametrize(
    ("declared", "given", "message"),
    [
        ("bool p", "2", "which holds 0 to 1"),
        ("T p", "2", "this type is not known"),
        ("sycl::float4 p", "2", "this type is not known"),
        ("float** p", "x", "takes a number"),
        ("sycl::local_accessor<float, 2> p", "local(4, float32)", "only one-dimensional"),
        ("sycl::local_accessor<sycl::float4> p", "local(6, float32)", "vectors of 4"),
        ("int* p", "x", "points to int32, but x holds float32"),
        ("float* p", "mask", "points to float32, but mask holds bool"),
    ],
)
def test_argument_of_another_type_is_refused(declared, given, message, bind_text) -> None:
    """What does not fit is never converted silently."""
    code = (
        'extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>)) '
        f"void k(float* out, {declared}) {{}}"
    )
    text = f"def launch(x, mask, out):\n    k[1, 1](out, {given})\n"
    with pytest.raises(PlanError) as caught:
        bind_text(text, code=code)
    assert message in caught.value.message


def test_limits_are_reached_but_not_exceeded(bind_text) -> None:
    """The most launches are allowed; a plan is far from the step budget then."""
    text = HEAD + "    for i in range(4096):\n        scale[1 + i // 7, 8](x, out, i * 2, 1.0)\n"
    assert len(bind_text(text).steps) == 4096


def test_unknown_language_is_our_mistake(bind_text) -> None:
    """A language that nobody has is a caller's error, not the candidate's."""
    with pytest.raises(ValueError, match="'hip' is unknown; known are sycl, cuda"):
        bind_text(HEAD + "    scale[1, 1](x, out, 1, 1)\n", language="hip")
    assert parse(HEAD + "    pass\n").launch.parameters == ("x", "out")
