"""Whatever the text, parse and bind raise the plan error alone, quickly, and execute nothing."""

from __future__ import annotations

import pathlib
import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.plan import (
    LIBRARY_OPS,
    ExtractionError,
    LaunchSequence,
    PlanError,
    configurations,
    kernels,
    parse,
    split,
    translation_unit,
)
from kernel_foundry.plan.source_text import strip_comments

VALID = (
    'TUNE = {"BLOCK": [64, 128], "FAST": [True, False]}\n'
    'CONST = {"COLS": "x.shape[-1] // n_head"}\n'
    'WHERE = ["BLOCK <= COLS"]\n'
    "EPS = 1e-5\n"
    "def rows(t, step):\n"
    "    return cdiv(t.numel(), step)\n"
    "def prepare(norm_weight, n_head):\n"
    "    folded = zeros(norm_weight.shape, float32)\n"
    "    scale[1, 1](norm_weight, folded, 1, 1)\n"
    "    each = cdiv(folded.numel(), n_head)\n"
    "def launch(x, out, eps, stride, folded, each):\n"
    '    """Scale."""\n'
    "    assert each == 250\n"
    "    y = ops.matmul(x, folded)\n"
    "    ops.linear(x, empty((7, x.shape[1]), x.dtype), bias=None, out=empty((6, 7), x.dtype))\n"
    "    n, total = x.shape[-1], 0\n"
    '    tmp = zeros((n, 2), "float32")\n'
    "    for i in range(3):\n"
    "        total += i\n"
    "    if total > 2 and x.dtype == float32:\n"
    "        scale[(rows(x, BLOCK),), BLOCK](x, out, n=n, factor=eps if FAST else EPS)\n"
    "    else:\n"
    "        scale[1, 1](x, tmp, n, 2 ** -3)\n"
    "    require(stride[0] == 2)\n"
    '    assert n % 4 == 0, "needs a multiple of 4"\n'
)
_FAST = settings(max_examples=150)

HOSTILE = [
    "",
    "(" * 5_000,
    "x = " + "-" * 60_000 + "1",
    "a" + ".b" * 20_000,
    "a" + "()" * 9_000,
    "a" + "[0]" * 9_000,
    "x = " + "+".join(["1"] * 9_000),
    "x = [" * 80 + "]" * 80,
    "if 1:\n" + "".join(" " * i + "if 1:\n" for i in range(1, 99)) + " " * 99 + "pass",
    "\0",
    "\ud800 = 1",
    "A = 9**9**9\ndef launch(x, out):\n pass",
    "A = 'a' * 10**9\ndef launch(x, out):\n pass",
    "A = 1 << 10**9\ndef launch(x, out):\n pass",
    "A = (1,) * 10**9\ndef launch(x, out):\n pass",
    "A = 0x" + "F" * 60_000 + "\ndef launch(x, out):\n pass",
    "A = " + "9" * 5_000 + "\ndef launch(x, out):\n pass",
    'TUNE = {"AB": [0x' + "F" * 30_000 + "]}",
    "WHERE = [0x" + "F" * 30_000 + "]\ndef launch(x, out):\n pass",
    "WHERE = ['" + "(" * 300 + "']\ndef launch(x, out):\n pass",
    "x = '\\q'",
    "def launch(x, out):\n return 1 is 1",
    "x = 1\n" * 20_000,
    "def prepare():\n  prepare()\ndef launch(x, out):\n pass",
    "def prepare():\n  n = launch(1, 2)\ndef launch(x, out):\n pass",
    "def prepare(eps):\n  for i in range(10**18):\n    pass\ndef launch(x, out):\n pass",
    "def launch(x, out):\n y = ops.conv2d(x, x, padding=10**18)",
    "def launch(x, out):\n ops.linear(ops.linear, ops)",
    "def launch(x, out):\n y = x\n for i in range(99):\n  y = ops.matmul(y, y)",
    "def launch(x, out):\n  t = (1,)\n  for i in range(100):\n    t = (t, t)\n",
    "def launch(x, out):\n  t = (1,)\n  for i in range(90000):\n    t = (t,)\n",
    "def launch(x, out):\n  for i in range(10**18):\n    pass\n",
    "def launch(x, out):\n  n = 3\n  for i in range(99):\n    n = n ** 64\n",
    "def launch(x, out):\n  n = 1.5\n  for i in range(99):\n    n = n ** 60000.0\n",
    "def launch(x, out):\n  n = (-8) ** 0.5\n",
    "def launch(x, out):\n  n = int(1e999)\n",
    "def launch(x, out):\n  n = -(2**63) - 1\n",
    "def launch(x, out):\n  t = empty((2**60, 2**60, 2**60), float32)\n",
    "def launch(x, out):\n  for i in range(90000):\n    t = empty(1, float32)\n",
    "def launch(x, out):\n  for i in range(5000):\n    scale[1, 1](x, out, 1, 1)\n",
    "def a(n):\n return b(n)\ndef b(n):\n return a(n)\ndef launch(x, out):\n a(1)",
    "".join(f"def f{i}(n):\n return f{i + 1}(n) + f{i + 1}(n)\n" for i in range(30))
    + "def f30(n):\n return n\ndef launch(x, out):\n m = f0(1)",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_plan_raises_the_plan_error(text, bind_text) -> None:
    """Size, depth, numbers, loops and recursion are all bounded."""
    with pytest.raises(PlanError):
        bind_text(text)


def test_nothing_is_executed(tmp_path: pathlib.Path, bind_text) -> None:
    """A plan that tries to reach Python's own functions leaves no trace."""
    trace = tmp_path / "trace"
    attempts = [
        f"__import__('pathlib').Path({str(trace)!r}).touch()",
        f"open({str(trace)!r}, 'w')",
        f"exec('open({str(trace)!r}, 1)')",
        f"x.__class__.__base__.__subclasses__()[0]({str(trace)!r})",
        f"(lambda: open({str(trace)!r}, 'w'))()",
        f"[open({str(trace)!r}, 'w') for i in (1,)]",
    ]
    for attempt in attempts:
        for text in (
            attempt,
            f"A = {attempt}\ndef launch(x, out):\n    pass",
            f"def launch(x, out):\n    {attempt}",
            f"def launch(x, out):\n    y = {attempt}",
            f"def launch(x, out: {attempt}):\n    pass",
            f"@{attempt}\ndef launch(x, out):\n    pass",
            f"def launch(x, out={attempt}):\n    pass",
            f'WHERE = [{attempt!r}]\ndef launch(x, out):\n    pass',
            f'CONST = {{"AB": {attempt!r}}}\ndef launch(x, out):\n    pass',
        ):  # fmt: skip
            with pytest.raises(PlanError):
                bind_text(text)
    assert not trace.exists()


def _plan_error_or_result(call: Callable[[], object]) -> object:
    """Return what `call` returns, or the plan error it raises; let all else out."""
    try:
        return call()
    except (PlanError, ExtractionError) as error:
        return error


def _only_the_plan_error(text: str, bind_text) -> None:
    result = _plan_error_or_result(lambda: bind_text(text, library_ops=tuple(LIBRARY_OPS)))
    if isinstance(result, PlanError):
        assert result.message
        assert result.line is None or result.line >= 1
    else:
        assert isinstance(result, LaunchSequence)


@_FAST
@given(text=st.text(max_size=300))
def test_random_text_raises_only_the_plan_error(text, bind_text) -> None:
    _only_the_plan_error(text, bind_text)


@_FAST
@given(seed=st.integers(0, 2**32), edits=st.integers(1, 8))
def test_mutated_plan_raises_only_the_plan_error(seed, edits, bind_text) -> None:
    """A valid plan with words cut, doubled, swapped or replaced."""
    chance = random.Random(seed)
    words = [
        "0",
        "-1",
        "()",
        "x",
        "out",
        "[",
        "]",
        "**",
        "9",
        "(x,)",
        "None",
        "for",
        ":",
        "\n",
        " ",
    ]
    words += [",", "*", "scale", "'a'", "1e400", "zeros", "return", "not", "BLOCK", "."]
    text = VALID
    for _ in range(edits):
        start = chance.randrange(len(text))
        stop = min(len(text), start + chance.choice([0, 1, 1, 3, 12]))
        text = text[:start] + chance.choice([*words, text[stop:start:-1]]) + text[stop:]
    _only_the_plan_error(text, bind_text)


_LEAVES = (
    "0", "1", "7", "2.5", "True", "'a'", "x", "out", "eps", "stride", "BLOCK", "COLS", "()",
    "float32", "torch.int8", "device", "params", "x.shape", "x.dtype", "nothing", "None",
    "1e308", "18446744073709551615",
)  # fmt: skip
_OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "==", "<", ">=", "!=", "in", "and", "or",
              "is", "<<", "@", "not in")  # fmt: skip
_FUNCTIONS = ("cdiv", "min", "max", "abs", "int", "len", "next_pow2", "sqrt", "exp", "log2",
              "empty", "zeros", "local", "rows", "range", "scale", "print", "ops.linear",
              "ops.conv2d", "ops.max_pool2d", "ops.mm",
              "ops.scaled_dot_product_attention")  # fmt: skip
_FORMS = ("({0} {o} {1})", "({0} {o} {1})", "{f}({0}, {1})", "{f}({0})", "{0}[{1}]", "({0}, {1})",
          "({0} if {1} else {2})", "(-{0})", "(not {0})", "{0}.size({1})",
          "{0}.shape[{1}:{2}]")  # fmt: skip


def _random_expression(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(_LEAVES)
    inner = [_random_expression(chance, depth - 1) for _ in range(3)]
    return chance.choice(_FORMS).format(
        *inner, o=chance.choice(_OPERATORS), f=chance.choice(_FUNCTIONS)
    )


@_FAST
@given(seed=st.integers(0, 2**32), depth=st.integers(0, 4))
def test_random_tree_raises_only_the_plan_error(seed, depth, bind_text) -> None:
    """Programs of random expressions at every place where an expression may stand."""
    chance = random.Random(seed)
    a, b, c, d = (_random_expression(chance, depth) for _ in range(4))
    text = (
        'TUNE = {"BLOCK": [64]}\nCONST = {"COLS": "x.shape[-1]"}\n'
        f"WHERE = [{d}]\n"
        "def rows(t, step):\n    return cdiv(t, step)\n"
        f"def prepare(stride):\n    made = {b}\n"
        "def launch(x, out, eps, stride, made):\n"
        f"    y = {a}\n    for i, j in ({b}, {c}):\n        scale[{c}, {b}](x, out, {a}, {d})\n"
        f"    assert {d}\n    scale[{a}, {d}](x, out, {b}, factor={c})\n"
    )
    _only_the_plan_error(text, bind_text)


@_FAST
@given(text=st.text(alphabet="extrn \"C_global(){}[]<>;,*&/\\\n'#define R0x", max_size=400))
def test_odd_device_code_raises_only_the_plan_error(text) -> None:
    """The scan of device code and the assembly of a translation unit survive any text."""
    code = f'extern "C" __global__ void k(int n, {text}'
    assert strip_comments(code).count("\n") == code.count("\n")
    for language in ("sycl", "cuda"):
        found = _plan_error_or_result(partial(kernels, code, language, {"BLOCK": 1}))
        assert isinstance(found, tuple | PlanError)
        assemble = partial(translation_unit, code, {"BLOCK": 1}, "", language)
        unit = _plan_error_or_result(assemble)
        assert isinstance(unit, str | PlanError)


@pytest.mark.parametrize(
    "code",
    [
        'extern "C" ' * 20_000,
        'extern "C" {' * 20_000,
        "typedef " + " " * 200_000,
        "#include <a> /*\n" * 15_000,
        'extern "C" __global__ void k(' + "const " * 40_000,
        'extern "C" __global__ void k(' + "[[" * 100_000,
        'R"(' * 60_000,
        "SYCL_X(" * 30_000,
    ],
    ids=range(8),
)
def test_long_device_code_is_scanned_in_linear_time(code) -> None:
    """Text made to blow up a scanner is done within the test's time."""
    for language in ("sycl", "cuda"):
        kernels(code, language, {})
        translation_unit(code, {"BLOCK": 1}, "", language)


@_FAST
@given(text=st.text(alphabet="`~pythonsyclcuda \n\r", max_size=200))
def test_odd_reply_raises_only_the_extraction_error(text) -> None:
    """Any reply is a candidate or a typed refusal."""
    result = _plan_error_or_result(lambda: split(text))
    assert isinstance(result, KernelSource | ExtractionError)


def test_valid_plan_of_the_mutation_test_is_valid(bind_text) -> None:
    """The mutations start from something that binds."""
    sequence = bind_text(VALID, library_ops=("matmul", "linear"))
    assert len(sequence.steps) == 4
    assert sequence.prepared_bytes == 4000
    assert len(list(configurations(parse(VALID)))) == 4


def test_deeply_nested_fences_are_no_trouble() -> None:
    """Fences within fences end in a refusal, not in a recursion error."""
    text = "\n".join("`" * count for count in range(1_500, 2, -1))
    with pytest.raises(ExtractionError):
        split(text)


def _deep_plan(use: str) -> str:
    """Return a plan whose helpers call each other, each from deep within an expression."""
    depth = 90
    wrapped = "-" * depth
    helpers = "".join(f"def f{i}(n):\n    return {wrapped}f{i + 1}(n)\n" for i in range(30))
    return f"{helpers}def f30(n):\n    return n\n{use}\n"


@pytest.mark.parametrize(
    "use",
    [
        'CONST = {"AB": "f0(1)"}\ndef launch(x, out):\n    scale[1, 1](x, out, 1, 1)',
        "WHERE = [f0(1)]\ndef launch(x, out):\n    scale[1, 1](x, out, 1, 1)",
        "def launch(x, out):\n    scale[f0(1), 1](x, out, 1, 1)",
    ],
    ids=["const", "where", "launch"],
)
def test_deep_call_chain_raises_the_plan_error(use, bind_text, names) -> None:
    """Python's own recursion limit is met as a limit of the plan."""
    with pytest.raises(PlanError, match="nested too deeply"):
        bind_text(_deep_plan(use))
    plan = parse(_deep_plan(use))
    if plan.const or plan.where:
        with pytest.raises(PlanError, match="nested too deeply"):
            list(configurations(plan, names))
