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
    assert tuple(each.name for each in written_inputs(function)) == written


@pytest.mark.parametrize(
    ("body", "is_replaced"),
    [
        ("out[...] = x + y", True),
        ("out[:] = x.to(out.dtype)", True),
        (
            "with y:\n        z = x\n        out[...] = z\n        out += 1\n        return out",
            True,
        ),
        ("out.copy_(x)\n    out[0] = 1", True),
        ("h, w = out.shape\n    out[...] = x[:h, :w]", True),
        ("out[...] = out + x", False),
        ("out[...] = data[2] + x", False),
        ("z = data[2] + 1\n    out[...] = z", False),
        ("z = out\n    out[...] = x + z", False),
        ("with use(out):\n        out[...] = x", False),
        ("out[0] = x", False),
        ("out[...] += x", False),
        ("if y:\n        out[...] = x", False),
        ("for i in y:\n        out[...] = x", False),
        ("def inner():\n        return out\n    out[...] = inner()", False),
        ("first, *_, last = data\n    out[...] = last", False),
        ("out.copy_(x, out)\n    out[0] = 1", False),
    ],
)
def test_what_is_replaced_before_it_is_read(body: str, is_replaced: bool) -> None:
    (function,) = ast.parse(f"def ref_kernel(data):\n    x, y, out = data\n    {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    (written,) = written_inputs(function)
    assert (written.name, written.position, written.is_replaced) == ("out", 2, is_replaced)


def test_a_place_that_the_text_does_not_show_is_none() -> None:
    (function,) = ast.parse("def ref_kernel(data):\n    x, *_, out = data\n    out[0] = x").body
    assert isinstance(function, ast.FunctionDef)
    (written,) = written_inputs(function)
    assert written.position is None


def test_a_function_without_arguments_writes_to_none() -> None:
    (function,) = ast.parse("def ref_kernel(*data):\n    data[0][0] = 1\n").body
    assert isinstance(function, ast.FunctionDef)
    assert written_inputs(function) == ()
