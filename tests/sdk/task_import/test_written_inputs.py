"""A function's text shows which parts of its argument it writes to."""

import ast

import pytest

from kernel_foundry.sdk.task_import.written_inputs import written_inputs


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("x, out = data\n    out[...] = x\n    return out", ("out",)),
        ("x, out = data\n    with y:\n        out[:, 0] += x", ("out",)),
        ("x, out = data\n    out.data[0][1] = x", ("out",)),
        ("x, out = data\n    out[0].copy_(x)", ("out",)),
        ("x, out = data\n    torch.add(x, x, out=out)", ("out",)),
        ("data, out = data\n    out[...] = data", ("out",)),
        ("data[0].zero_()", ("data",)),
        ("x = data\n    x.zero_()", ("x",)),
        ("x, y = data\n    return x + y[0]", ()),
        ("x, y = data\n    z = x.clone()\n    z[...] = y", ()),
        ("x, y = data\n    y = y.clone()\n    y[...] = x", ()),
        ("data, y = data\n    y.requires_grad_()\n    y.__len__()", ()),
        ("def inner(out):\n        x[0] = 1\n    return inner(data)", ()),
    ],
)
def test_writes_are_told_from_reads(body: str, written: tuple[str, ...]) -> None:
    (function,) = ast.parse(f"def ref_kernel(data):\n    {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert written_inputs(function) == written


def test_a_function_without_arguments_writes_to_none() -> None:
    (function,) = ast.parse("def ref_kernel(*data):\n    data[0][0] = 1\n").body
    assert isinstance(function, ast.FunctionDef)
    assert written_inputs(function) == ()
