"""The library calls that a plan may make: `ops.NAME(...)`, with torch's semantics and keywords.

Heavy library work, where a hand-written kernel rarely wins. Checks a call and computes the shape
and dtype of its result, without torch: the evaluator runs it. Errors carry no line.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kernel_foundry.plan import library_shapes as shapes
from kernel_foundry.plan.errors import PlanError, bind_error, policy_error, short
from kernel_foundry.plan.library_shapes import Rule, Shape
from kernel_foundry.plan.values import PlanTensor, Value, describe

_FLOATS: Final = ("float64", "float32", "float16", "bfloat16")
_FUNCTIONAL: Final = "torch.nn.functional"


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOp:
    """One library function."""

    name: str
    """After `ops.`; the function's name in `module`."""
    module: str
    """"torch" or "torch.nn.functional"."""
    required: tuple[str, ...]
    optional: tuple[tuple[str, Value], ...]
    """Name and default, in torch's order."""
    keyword_only: tuple[str, ...]
    """Those of `optional` that torch takes by name only."""
    rule: Rule

    def __str__(self) -> str:
        """Return the call's form."""
        given = [*self.required, *(f"{name}={value!r}" for name, value in self.optional)]
        return f"ops.{self.name}({', '.join(given)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """A call that is known to be valid."""

    op: LibraryOp
    given: tuple[tuple[str, Value], ...]
    """Parameters that the plan gives, in torch's order."""
    shape: Shape
    """Shape of the contiguous result."""
    dtype: str
    out: PlanTensor | None
    """Where the result goes, when the plan says so."""

    @property
    def arguments(self) -> tuple[Value, ...]:
        """Values of the required parameters, in order."""
        return tuple(value for name, value in self.given if name in self.op.required)

    @property
    def keywords(self) -> tuple[tuple[str, Value], ...]:
        """Names and values of the others."""
        return tuple(item for item in self.given if item[0] not in self.op.required)


def _op(
    name: str,
    required: str,
    rule: Rule,
    *,
    module: str = _FUNCTIONAL,
    keyword_only: tuple[str, ...] = (),
    **optional: Value,
) -> LibraryOp:
    return LibraryOp(
        name=name,
        module=module,
        required=tuple(required.split()),
        optional=tuple(optional.items()),
        keyword_only=keyword_only,
        rule=rule,
    )


def _by_dimensions(dimensions: int) -> tuple[LibraryOp, ...]:
    tail = f"{dimensions}d"
    return (
        _op(f"conv{tail}", "input weight", shapes.convolution(dimensions),
            bias=None, stride=1, padding=0, dilation=1, groups=1),
        _op(f"conv_transpose{tail}", "input weight", shapes.transposed_convolution(dimensions),
            bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1),
        _op(f"max_pool{tail}", "input kernel_size", shapes.max_pool(dimensions),
            stride=None, padding=0, dilation=1, ceil_mode=False),
        _op(f"avg_pool{tail}", "input kernel_size", shapes.average_pool(dimensions),
            stride=None, padding=0, ceil_mode=False, count_include_pad=True),
        _op(f"adaptive_avg_pool{tail}", "input output_size", shapes.adaptive_pool(dimensions)),
    )  # fmt: skip


_SCALES: Final = ("beta", "alpha")
_TABLE: Final = (
    _op("linear", "input weight", shapes.linear, bias=None),
    _op("matmul", "input other", shapes.matmul, module="torch"),
    _op("mm", "input mat2", shapes.mm, module="torch"),
    _op("bmm", "input mat2", shapes.bmm, module="torch"),
    _op("addmm", "input mat1 mat2", shapes.addmm, module="torch", keyword_only=_SCALES,
        beta=1, alpha=1),
    _op("baddbmm", "input batch1 batch2", shapes.baddbmm, module="torch", keyword_only=_SCALES,
        beta=1, alpha=1),
    *(op for dimensions in (1, 2, 3) for op in _by_dimensions(dimensions)),
    _op("scaled_dot_product_attention", "query key value", shapes.attention,
        keyword_only=("scale", "enable_gqa"),
        attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False),
)  # fmt: skip

LIBRARY_OPS: Final[Mapping[str, LibraryOp]] = {op.name: op for op in _TABLE}
"""Every library call there is, by name; a task's sidecar allows some of them."""


def check_call(
    name: str,
    positional: tuple[Value, ...],
    keywords: Mapping[str, Value],
    allowed: Collection[str],
) -> CheckedCall:
    """Return the call with the shape and dtype of its result.

    Args:
        name: After `ops.`; a key of `LIBRARY_OPS`.
        positional: Values in order.
        keywords: Values by name, `out` among them when given.
        allowed: Names that the task allows.

    Raises:
        PlanError: `policy` when the task does not allow it, `bind` for wrong arguments.
    """
    if name not in allowed:
        listed = ", ".join(sorted(allowed)) or "none"
        raise policy_error(
            f"ops.{name} is not allowed: this task allows {listed} (library_ops in its sidecar); "
            "write a kernel for this step"
        )
    op = LIBRARY_OPS[name]
    others = {key: value for key, value in keywords.items() if key != "out"}
    given = _match(op, positional, others)
    try:
        dtype = _check_values(given)
        shape = op.rule({**dict(op.optional), **given})
        out = _check_out(keywords.get("out"), given, shape, dtype)
    except PlanError as error:
        raise PlanError(f"ops.{name}: {error.message}", kind=error.kind) from None
    order = (*op.required, *(key for key, _ in op.optional))
    return CheckedCall(
        op=op,
        given=tuple((key, given[key]) for key in order if key in given),
        shape=shape,
        dtype=dtype,
        out=out,
    )


def _match(
    op: LibraryOp, positional: tuple[Value, ...], keywords: Mapping[str, Value]
) -> dict[str, Value]:
    names = (*op.required, *(key for key, _ in op.optional))
    by_position = [name for name in names if name not in op.keyword_only]
    given = dict(zip(by_position, positional, strict=False))
    unknown = [key for key in keywords if key not in names]
    if unknown:
        raise bind_error(f"ops.{op.name} has no keyword {short(unknown[0])!r}: write {op}")
    doubled = [key for key in keywords if key in given]
    if doubled or len(positional) > len(by_position):
        raise bind_error(f"too many arguments: write {op}")
    given.update(keywords)
    missing = [name for name in op.required if name not in given]
    if missing:
        raise bind_error(f"{missing[0]} is missing: write {op}")
    return given


def _check_values(given: Mapping[str, Value]) -> str:
    """Refuse what is no operand; return the dtype that all tensors have."""
    dtypes: dict[str, str] = {}
    for name, value in given.items():
        if isinstance(value, PlanTensor):
            if not value.element_count:
                raise bind_error(f"{name} {shapes.text(value)} has no elements")
            if not (name == "attn_mask" and value.dtype == "bool"):
                dtypes[name] = value.dtype
        elif isinstance(value, float) and not math.isfinite(value):
            raise bind_error(f"{name} must be finite, not {value!r}")
        elif not isinstance(value, int | float | str | tuple | None):
            raise bind_error(f"{name} cannot be {describe(value)}")
    if len(set(dtypes.values())) > 1:
        listed = ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        raise bind_error(f"all tensors must have one dtype: {listed}")
    dtype = next(iter(dtypes.values()), "")
    if dtype and dtype not in _FLOATS:
        raise bind_error(f"tensors must be {', '.join(_FLOATS)}, not {dtype}")
    _check_scales(given)
    return dtype


def _check_scales(given: Mapping[str, Value]) -> None:
    for name in (*_SCALES, "scale", "dropout_p"):
        value = given.get(name)
        is_absent = value is None and (name == "scale" or name not in given)
        if not is_absent and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise bind_error(f"{name} must be a number, not {describe(value)}")
    if given.get("dropout_p", 0.0) != 0.0:
        raise bind_error("dropout_p must be 0: a result may not be random")


def _check_out(
    out: Value, given: Mapping[str, Value], shape: Shape, dtype: str
) -> PlanTensor | None:
    if out is None:
        return None
    if not isinstance(out, PlanTensor):
        raise bind_error(f"out must be a tensor, not {describe(out)}")
    if (out.shape, out.dtype) != (shape, dtype):
        raise bind_error(
            f"the result is {dtype} {shape}, but out is {out.dtype} {shapes.text(out)}"
        )
    if any(
        isinstance(value, PlanTensor) and (value.kind, value.name) == (out.kind, out.name)
        for value in given.values()
    ):
        raise bind_error(f"out {out.name} is also an operand: leave out= away")
    return out
