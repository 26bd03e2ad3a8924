"""Every refusal names its line and what is allowed instead."""

from __future__ import annotations

import pickle

import pytest

from kernel_foundry.plan import NotMeant, PlanError, PlanErrorKind, parse

LAUNCH = "def launch(x, out):\n"
GOOD = "    scale[1, 1](x, out, 1, 1)\n"

STATEMENTS = [
    ("import math", "policy", "import is not available"),
    ("while True: pass", "policy", "use for over range"),
    ("for i in range(3): break", "policy", "break is not available"),
    ("for i in range(3): continue", "policy", "continue is not available"),
    ("for i in (1, 2):\n        pass\n    else:\n        pass", "policy", "else after for"),
    ("for i in enumerate(x.shape): pass", "policy", "for runs over range(...) or a tuple"),
    ("for i in range(): pass", "policy", "range takes 1 to 3 numbers"),
    ("with x: pass", "policy", "with is not available"),
    ("try:\n        pass\n    except ValueError:\n        pass", "policy", "use require"),
    ("raise ValueError", "policy", "raise is not available"),
    ("class A: pass", "policy", "classes are not available"),
    ("def inner(): pass", "policy", "define it at top level"),
    ("global x", "policy", "global is not available"),
    ("del x", "policy", "del is not available"),
    ("n: int = 3", "policy", "write name = value"),
    ("n = [1, 2]", "policy", "write a tuple"),
    ("n = {1: 2}", "policy", "write a tuple"),
    ("n = {1, 2}", "policy", "write a tuple"),
    ("n = tuple(i for i in (1, 2))", "policy", "there is no function 'tuple'"),
    ("n = [i for i in (1, 2)]", "policy", "comprehensions are not available"),
    ("n = lambda: 1", "policy", "define a helper function"),
    ("n = f'{x}'", "policy", "write a plain string"),
    ("n = (m := 3)", "policy", "assign in a statement of its own"),
    ("a, *b = x.shape", "policy", "name every item"),
    ("n = None", "policy", "None is not available"),
    ("n = 3j", "policy", "3j is not available"),
    ("n = b'x'", "policy", "b'x' is not available"),
    ("n = ...", "policy", "Ellipsis is not available"),
    ("n = 1 << 3", "policy", "write * 2 ** n"),
    ("n = 8 >> 3", "policy", "write // 2 ** n"),
    ("n = 8 & 3", "policy", "& is not available"),
    ("n = ~8", "policy", "~ is not available"),
    ("n = x @ x", "policy", "a kernel's work"),
    ("n = 1 is 1", "policy", "compare with =="),
    ("n = x.view(3)", "policy", "pass the tensor and an integer offset"),
    ("n = x.T", "policy", "pass the tensor and an integer offset"),
    ("n = x.data_ptr()", "policy", "pass the tensor and an integer offset"),
    ("n = x.device", "policy", ".device is not available: tensors have .shape"),
    ("n = x.numel", "policy", "numel is called"),
    ("n = device.name", "policy", "device has .compute_units"),
    ("n = torch.zeros(3)", "policy", "scratch memory is empty(shape, dtype)"),
    ("n = torch.pi", "policy", "only dtypes are"),
    ("n = x[0, 1]", "policy", "only one index"),
    ("x[0] = 1", "policy", "kernels write tensors"),
    ("n = ops.linear(x, x)", "policy", "this task allows none"),
    ("n = ops.relu(x)", "policy", "there is no library call ops.relu: there are linear, matmul"),
    ("ops = 3", "policy", "ops has a meaning of its own"),
    ("n = ops.linear", "policy", "a library call is y = ops.NAME"),
    ("n = ops", "policy", "a library call is y = ops.NAME"),
    ("n = print(1)", "policy", "there is no function 'print'"),
    ("print(1)", "policy", "a kernel is launched as print[grid, block](arguments)"),
    ("scale(x, out)", "policy", "a kernel is launched as scale[grid, block](arguments)"),
    ("n = scale[1, 1](x)", "policy", "a launch is a statement of its own"),
    ("scale[1](x)", "policy", "a launch is kernel[grid, block](...)"),
    ("scale[1, 1, 0, 'cooperative', 5](x)", "policy", "a launch is kernel[grid, block](...)"),
    ("x.a[1, 1](x)", "policy", "starts with the kernel's name"),
    ("scale[1, 1](*x.shape)", "policy", "name every item"),
    ("scale[1, 1](**x)", "policy", "** is not available"),
    ("n = require(True)", "policy", "only available as a statement"),
    ("require(True, 'why')", "policy", "require takes one condition"),
    ("n = range(3)", "policy", "only available in for"),
    ("assert True, x", "policy", "a plain string"),
    ("x", "policy", "this statement does nothing"),
    ("n = cdiv(1, 2)(3)", "policy", "only named functions"),
    ("n = 99999999999999999999", "limit", "must fit 64 bits"),
    ("n = 3 +", "syntax", "not valid Python"),
    ("n = y + 1", "bind", "there is no name 'y' here; known are out, x"),
    ("n = eps", "bind", "'eps' must be listed as a parameter"),
    ("n = x + 1", "bind", "pass the tensor and an integer offset"),
    ("n = x[0]", "bind", "pass the tensor and an integer offset"),
    ("n = x[1:]", "bind", "pass the tensor and an integer offset"),
    ("n = x == out", "bind", "compare .shape or .dtype"),
    ("n = 3 if x else 4", "bind", "neither true nor false"),
    ("n = (3).shape", "bind", "3 has no .shape"),
    ("n = (3).size(0)", "bind", "3 has no .size"),
    ("n = x.size(2)", "bind", "dimension 2 is outside of x"),
    ("n = x.numel(1)", "bind", "write .size(i)"),
    ("n = x.shape[5]", "bind", "index 5 is outside"),
    ("n = x.shape[0.5]", "bind", "must be a whole number"),
    ("n = x.shape[::0]", "bind", "cannot be 0"),
    ("n = (3)[0]", "bind", "3 has no items"),
    ("n = params['nope']", "bind", "known are norm.weight, half.weight"),
    ("n = params[3]", "bind", "a dotted name in quotes"),
    ("n = params['a':]", "bind", "a dotted name in quotes"),
    ("a, b, c = x.shape", "bind", "cannot unpack 2 item(s) into 3"),
    ("a, b = 3", "bind", "cannot unpack 3: only a tuple"),
    ("for i in 3: pass", "bind", "for runs over range(...) or a tuple, not 3"),
    ("for i in range(1, 2, 0): pass", "bind", "step of range cannot be 0"),
    ("for i in range(1.5): pass", "bind", "must be a whole number"),
    ("n = 1 // 0", "bind", "division by zero"),
    ("n = 1 % 0", "bind", "division by zero"),
    ("n = 0 ** -1", "bind", "division by zero"),
    ("n = cdiv(1, 0)", "bind", "division by zero"),
    ("n = cdiv(1.5, 2)", "bind", "must be a whole number"),
    ("n = cdiv(1)", "bind", "cdiv takes 2 argument(s), not 1"),
    ("n = cdiv(1, b=2)", "bind", "takes no keyword arguments"),
    ("n = sqrt(-1)", "bind", "sqrt is not defined for -1"),
    ("n = log2(0)", "bind", "log2 is not defined for 0"),
    ("n = exp(1000)", "limit", "the result of exp is too large"),
    ("n = (-8) ** 0.5", "bind", "not a real number"),
    ("n = 9 ** 9 ** 9", "limit", "too large"),
    ("n = 10.0 ** 400", "limit", "too large"),
    ("n = 2 ** 64", "limit", "must fit 64 bits"),
    ("n = 'a' * 3", "bind", "* takes numbers, not the string 'a'"),
    ("n = (1,) * 3", "bind", "* takes numbers, not a tuple"),
    ("n = 'a' < 'b'", "bind", "comparison takes numbers"),
    ("n = 1 in 3", "bind", "in needs a tuple"),
    ("n = len(x)", "bind", "a tensor has .shape"),
    ("n = min()", "bind", "at least one number"),
    ("n = next_pow2(2.0)", "bind", "must be a whole number"),
    ("n = empty(3)", "bind", 'write empty(shape, dtype), such as empty(1024, "float32")'),
    ("n = empty(3, 'f32')", "bind", "the dtype of empty must be"),
    ("n = empty(0, float32)", "bind", "must be at least 1"),
    ("n = empty(2.0, float32)", "bind", "must be a whole number"),
    ("n = empty(2, float32, 3)", "bind", "write empty(shape, dtype)"),
    ("n = empty((1024, 1024), float32)", "limit", "scratch of 4194304 bytes is too large"),
    ("n = local(0, float32)", "bind", "at least 1"),
    ("for i in range(10 ** 9): pass", "limit", "more than 100000 steps"),
    ("for i in range(4097): scale[1, 1](x, out, 1, 1)", "limit", "at most 4096 launches"),
    ("for i in range(1025): n = empty(1, 'int8')", "limit", "scratch"),
    ("n = x.shape\n    for i in range(9): n = n + n", "limit", "a tuple holds at most"),
    ("assert 1 > 2, 'one is small'", "assert", "assert: one is small (1 > 2 is false)"),
    ("assert 1 > 2", "assert", "assert: 1 > 2 is false"),
    ("require(1 > 2)", "not_meant", "not meant: require(1 > 2) is false"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "kind", "message"), STATEMENTS)
def test_statement_is_refused_with_its_line(statement, kind, message, bind_text) -> None:
    """The refusal stands at the statement and says what to do."""
    with pytest.raises(PlanError) as caught:
        bind_text(LAUNCH + GOOD + f"    {statement}\n")
    assert message in caught.value.message
    assert caught.value.kind == kind
    # A statement of several lines is refused in its first or second line.
    assert caught.value.line in (3, 4)


TOP_LEVEL = [
    ("import torch", "policy", "import is not available", 1),
    ("print(1)", "policy", "top level holds TUNE", 1),
    ("if True:\n    A = 1", "policy", "top level holds TUNE", 1),
    ("A, B = 1, 2", "policy", "top level holds TUNE", 1),
    ("A += 1", "policy", "top level holds TUNE", 1),
    ("A = x.shape", "policy", "must be a literal", 1),
    ("A = cdiv(1, 2)", "policy", "must be a literal", 1),
    ("A = BLOCK * 2", "policy", "values from TUNE or shapes go into CONST", 1),
    ("A = 1 // 0", "bind", "division by zero", 1),
    ("A = 1\nA = 2", "policy", "A is defined twice (first in line 1)", 2),
    ("def prepare(w):\n    pass", "bind", "prepare has the parameter 'w', which the task", 1),
    ("def cdiv(a, b):\n    return a", "policy", "cdiv is built in", 1),
    ("def f(n):\n    return f(n)", "policy", "recursion is not available", 1),
    ("def f(n):\n    return g(n)\ndef g(n):\n    return f(n)", "policy", "recursion", 1),
    ("def f(n=1):\n    return n", "policy", "only plain parameters", 1),
    ("def f(*n):\n    return n", "policy", "only plain parameters", 1),
    ("@x\ndef f(n):\n    return n", "policy", "decorators", 2),
    ("async def f(n):\n    return n", "policy", "top level holds", 1),
    ("TUNE = 3", "policy", 'TUNE = {"BLOCK": [128, 256]}', 1),
    ("TUNE = {BLOCK: [1]}", "policy", "quoted names", 1),
    ("TUNE = {**a}", "policy", "quoted names", 1),
    ('TUNE = {"BLOCK": 128}', "policy", "must be a list of literals", 1),
    ('TUNE = {"BLOCK": []}', "policy", "must be a list of literals", 1),
    ('TUNE = {"BLOCK": [1 + 1]}', "policy", "must list literals", 1),
    ('TUNE = {"BLOCK": [None]}', "policy", "None is not available", 1),
    ('TUNE = {"BLOCK": [1, 1]}', "policy", "lists a value twice", 1),
    ('TUNE = {"BLOCK": ["a; int b"]}', "policy", "must be a plain name or type", 1),
    ('TUNE = {"BLOCK": ["a\\n#include"]}', "policy", "must be a plain name or type", 1),
    ('TUNE = {"B": [1]}', "policy", "two characters or more", 1),
    ('TUNE = {"block": [1]}', "policy", "two characters or more", 1),
    ('TUNE = {"SYCL_X": [1]}', "policy", "a meaning of its own", 1),
    ('TUNE = {"INFINITY": [1]}', "policy", "a meaning of its own", 1),
    ('TUNE = {"AB": [1], "AB": [2]}', "policy", "defined twice", 1),
    ('TUNE = {"AB": [1]}\nCONST = {"AB": "1"}', "policy", "defined twice", 2),
    ('TUNE = {"AB": [1]}\nAB = 3', "policy", "defined twice", 2),
    ('TUNE = {"AB": [1]}\ndef f(AB):\n    return AB', "policy", "a TUNE or CONST name", 2),
    ('TUNE = {"AB": [1]}\ndef f(n):\n    AB = n', "policy", "a TUNE or CONST name", 3),
    ("CONST = 3", "policy", "must be a dictionary", 1),
    ('CONST = {"AB": "x.shape["}', "syntax", "not valid Python", 1),
    ('\nWHERE = [\n"1 +"]', "syntax", "not valid Python", 3),
    ('WHERE = ["open(1)"]', "policy", "there is no function 'open'", 1),
    ('CONST = {"AB": "x.shape"}', "policy", 'CONST["AB"] must be a whole number', 1),
    ('CONST = {"AB": "nope"}', "bind", "there is no name 'nope' here", 1),
    ('CONST = {"AB": "empty(1, float32)"}', "bind", "only available in launch", 1),
    ('CONST = {"AB": "x.shape[0]"}\nWHERE = ["AB > 6"]', "not_meant", "WHERE AB > 6 is false", 2),
    ("WHERE = [1 > 2]", "not_meant", "WHERE 1 > 2 is false", 1),
    ("WHERE = ['x']", "bind", "neither true nor false", 1),
    ("TUNE = {" + ", ".join(f'"AB{i}": [1]' for i in range(17)) + "}", "limit", "at most 16", 1),
    ('TUNE = {"AB": [' + ",".join(map(str, range(65))) + "]}", "limit", "at most 64 values", 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message", "line"), TOP_LEVEL)
def test_top_level_is_refused_with_its_line(text, kind, message, line, bind_text) -> None:
    """What may not stand at top level is named."""
    with pytest.raises(PlanError) as caught:
        bind_text(text + "\n" + LAUNCH + GOOD)
    assert message in caught.value.message
    assert (caught.value.kind, caught.value.line) == (kind, line)


def test_plan_without_launch_is_refused() -> None:
    with pytest.raises(PlanError, match="there is no launch"):
        parse("A = 1\n")


def test_too_many_helpers_are_refused() -> None:
    """The number of helpers is bounded."""
    text = "".join(f"def f{i}(n):\n    return n\n" for i in range(33))
    with pytest.raises(PlanError, match="at most 32 helper functions"):
        parse(text + LAUNCH + GOOD)


def test_launch_parameter_must_be_in_the_name_table(bind_text) -> None:
    """An unknown parameter lists what it may be, or the first of what the task has."""
    with pytest.raises(PlanError, match="the parameter 'bias', which the task does not have") as e:
        bind_text("\ndef launch(x, bias, out):\n" + GOOD)
    assert e.value.line == 2
    assert "norm_weight" in e.value.message
    with pytest.raises(PlanError, match="not have: did you mean norm_weight\\?"):
        bind_text("\ndef launch(x, normal_weight, out):\n" + GOOD)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    pass\n", "launch launches no kernel"),
        ("    y = empty(6, float32)\n    scale[1, 1](x, y, 1, 1)\n", "the output out is passed to"),
    ],
)
def test_output_without_a_kernel_is_refused(body, message, bind_text) -> None:
    """Every output needs a kernel."""
    with pytest.raises(PlanError, match=message):
        bind_text(LAUNCH + body)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("half(1, 2)", "too many arguments: write half(n)"),
        ("half()", "arguments do not match: write half(n)"),
        ("half(m=1)", "arguments do not match: write half(n)"),
        ("nothing()", "nothing to assign"),
        ("1 + nothing()", "the helper returns no value"),
    ],
)
def test_wrong_helper_call_is_refused(call, message, bind_text) -> None:
    helpers = "def half(n):\n    return n // 2\ndef nothing():\n    pass\n"
    with pytest.raises(PlanError) as caught:
        bind_text(f"{helpers}{LAUNCH}    n = {call}\n{GOOD}")
    assert message in caught.value.message
    assert caught.value.line == 6


def test_error_survives_pickling() -> None:
    """The error crosses process borders with its kind and line."""
    for error in (
        PlanError("wrong", kind=PlanErrorKind.BIND, line=3),
        NotMeant("skip", line=4),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.message, copy.kind, copy.line, str(copy)) == (
            type(error), error.message, error.kind, error.line, str(error),
        )  # fmt: skip
    assert str(PlanError("wrong", kind=PlanErrorKind.BIND, line=3)) == "line 3: wrong"
