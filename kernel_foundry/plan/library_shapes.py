"""Shapes of what library calls return: torch's own rules, computed without torch.

A rule takes the call's values by parameter name, every default filled in, and returns the shape of
the contiguous result. Errors carry neither the call's name nor a line; the caller adds both. Which
calls there are is in `library.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kernel_foundry.plan.arithmetic import whole
from kernel_foundry.plan.errors import bind_error, short
from kernel_foundry.plan.values import PlanTensor, Value, describe

Shape: TypeAlias = tuple[int, ...]
Values: TypeAlias = Mapping[str, Value]
Rule: TypeAlias = Callable[[Values], Shape]

_MAX_OPTION = 2**31 - 1
"""Strides, paddings and the like; torch takes 64 bits, its libraries 32."""


def linear(values: Values) -> Shape:
    """`input @ weight.T + bias`."""
    source, weight = tensor(values, "input"), tensor(values, "weight", rank=2)
    if not source.shape or source.shape[-1] != weight.shape[1]:
        raise bind_error(
            f"the last size of input {text(source)} must be in_features of weight {text(weight)}"
        )
    _check_vector(values, "bias", weight.shape[0])
    return (*source.shape[:-1], weight.shape[0])


def matmul(values: Values) -> Shape:
    """`input @ other`; one dimension is a vector, leading ones broadcast."""
    left, right = tensor(values, "input"), tensor(values, "other")
    if not left.shape or not right.shape:
        raise bind_error("input and other need at least one dimension")
    rows = left.shape[-2:-1]
    inner = right.shape[-2] if len(right.shape) > 1 else right.shape[0]
    columns = right.shape[-1:] if len(right.shape) > 1 else ()
    if left.shape[-1] != inner:
        raise bind_error(f"the inner sizes of {text(left)} and {text(right)} differ")
    batch = broadcast(left.shape[:-2], right.shape[:-2])
    if batch is None:
        raise bind_error(f"the leading sizes of {text(left)} and {text(right)} do not broadcast")
    return (*batch, *rows, *columns)


def mm(values: Values) -> Shape:
    """Product of two matrices."""
    return _product(tensor(values, "input", rank=2), tensor(values, "mat2", rank=2))


def bmm(values: Values) -> Shape:
    """Products of two batches of matrices."""
    return _product(tensor(values, "input", rank=3), tensor(values, "mat2", rank=3))


def addmm(values: Values) -> Shape:
    """`beta * input + alpha * mat1 @ mat2`."""
    shape = _product(tensor(values, "mat1", rank=2), tensor(values, "mat2", rank=2))
    return _added(tensor(values, "input"), shape)


def baddbmm(values: Values) -> Shape:
    """`beta * input + alpha * batch1 @ batch2`."""
    shape = _product(tensor(values, "batch1", rank=3), tensor(values, "batch2", rank=3))
    return _added(tensor(values, "input"), shape)


def convolution(dimensions: int) -> Rule:
    """Return the rule of `conv1d`, `conv2d` or `conv3d`."""

    def rule(values: Values) -> Shape:
        source, weight = _filtered(values, dimensions)
        groups = option(values, "groups", least=1)
        if source.shape[1] != weight.shape[1] * groups:
            raise bind_error(
                f"input {text(source)} has {source.shape[1]} channels; weight {text(weight)} with "
                f"groups={groups} takes {weight.shape[1] * groups}"
            )
        if weight.shape[0] % groups:
            raise bind_error(f"groups={groups} does not divide {weight.shape[0]} output channels")
        _check_vector(values, "bias", weight.shape[0])
        stride = options(values, "stride", dimensions, least=1)
        dilation = options(values, "dilation", dimensions, least=1)
        kernel = weight.shape[2:]
        spans = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
        around = _padding(values, dimensions, stride, spans)
        return (
            source.shape[0],
            weight.shape[0],
            *(
                _at_least_one((size + both - span) // step + 1, source)
                for size, both, span, step in zip(
                    source.shape[2:], around, spans, stride, strict=True
                )
            ),
        )

    return rule


def transposed_convolution(dimensions: int) -> Rule:
    """Return the rule of `conv_transpose1d`, `conv_transpose2d` or `conv_transpose3d`."""

    def rule(values: Values) -> Shape:
        source, weight = _filtered(values, dimensions)
        groups = option(values, "groups", least=1)
        if source.shape[1] != weight.shape[0] or source.shape[1] % groups:
            raise bind_error(
                f"input {text(source)} must have as many channels as weight {text(weight)} has "
                f"first sizes, in {groups} equal group(s)"
            )
        channels = weight.shape[1] * groups
        _check_vector(values, "bias", channels)
        stride = options(values, "stride", dimensions, least=1)
        dilation = options(values, "dilation", dimensions, least=1)
        padding = options(values, "padding", dimensions, least=0)
        extra = options(values, "output_padding", dimensions, least=0)
        if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
            raise bind_error("output_padding must be smaller than stride or dilation")
        return (
            source.shape[0],
            channels,
            *(
                _at_least_one((size - 1) * s - 2 * p + d * (k - 1) + e + 1, source)
                for size, k, s, p, d, e in zip(
                    source.shape[2:], weight.shape[2:], stride, padding, dilation, extra,
                    strict=True,
                )
            ),
        )  # fmt: skip

    return rule


def attention(values: Values) -> Shape:
    """`softmax(query @ key.T * scale + mask) @ value` over the last two dimensions."""
    query, key, value = (tensor(values, name) for name in ("query", "key", "value"))
    ranks = {len(item.shape) for item in (query, key, value)}
    if len(ranks) != 1 or min(ranks) < 3:
        raise bind_error(
            f"query {text(query)}, key {text(key)} and value {text(value)} must have as many "
            "dimensions, at least 3: (…, heads, length, size)"
        )
    _check_heads(query, key, value, flag(values, "enable_gqa"))
    if query.shape[-1] != key.shape[-1]:
        raise bind_error(f"query {text(query)} and key {text(key)} differ in their last size")
    if key.shape[-2] != value.shape[-2]:
        raise bind_error(f"key {text(key)} and value {text(value)} differ in length")
    _check_mask(values, (*query.shape[:-1], key.shape[-2]))
    return (*query.shape[:-1], value.shape[-1])


def max_pool(dimensions: int) -> Rule:
    """Return the rule of `max_pool1d`, `max_pool2d` or `max_pool3d`."""
    return lambda values: _pooled(values, dimensions, options(values, "dilation", dimensions, 1))


def average_pool(dimensions: int) -> Rule:
    """Return the rule of `avg_pool1d`, `avg_pool2d` or `avg_pool3d`."""

    def rule(values: Values) -> Shape:
        flag(values, "count_include_pad")
        return _pooled(values, dimensions, (1,) * dimensions)

    return rule


def adaptive_pool(dimensions: int) -> Rule:
    """Return the rule of `adaptive_avg_pool1d`, `…2d` or `…3d`."""

    def rule(values: Values) -> Shape:
        source = tensor(values, "input", rank=dimensions + 2)
        wanted = options(values, "output_size", dimensions, least=1)
        return (*source.shape[:2], *wanted)

    return rule


def tensor(values: Values, name: str, rank: int | None = None) -> PlanTensor:
    """Return the tensor called `name`.

    Raises:
        PlanError: `bind`, when it is none, or has not `rank` dimensions.
    """
    value = values[name]
    if not isinstance(value, PlanTensor):
        raise bind_error(f"{name} must be a tensor, not {describe(value)}")
    if rank is not None and len(value.shape) != rank:
        raise bind_error(f"{name} must have {rank} dimensions, not {text(value)}")
    return value


def option(values: Values, name: str, *, least: int) -> int:
    """Return the whole number called `name`.

    Raises:
        PlanError: `bind`, when it is none or out of range.
    """
    return _in_range(values[name], name, least)


def options(values: Values, name: str, count: int, least: int) -> Shape:
    """Return `count` whole numbers: a tuple of so many, or one for all.

    Raises:
        PlanError: `bind`.
    """
    value = values[name]
    items = value if isinstance(value, tuple) else (value,)
    if len(items) not in (1, count):
        raise bind_error(f"{name} is a whole number or a tuple of {count}, not {len(items)} items")
    numbers = tuple(_in_range(item, name, least) for item in items)
    return numbers * count if len(numbers) == 1 else numbers


def flag(values: Values, name: str) -> bool:
    """Return the bool called `name`.

    Raises:
        PlanError: `bind`, when it is none.
    """
    value = values[name]
    if not isinstance(value, bool):
        raise bind_error(f"{name} must be True or False, not {describe(value)}")
    return value


def text(item: PlanTensor) -> str:
    """Return a tensor's name and shape for a message."""
    return f"{item.name} {short(str(item.shape), 80)}"


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """Return the shape that both broadcast to, or None when they do not."""
    rank = max(len(left), len(right))
    pairs = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    found = []
    for first, second in pairs:
        if first != second and 1 not in (first, second):
            return None
        found.append(second if first == 1 else first)
    return tuple(found)


def _product(left: PlanTensor, right: PlanTensor) -> Shape:
    if left.shape[:-2] != right.shape[:-2]:
        raise bind_error(f"{text(left)} and {text(right)} hold different numbers of matrices")
    if left.shape[-1] != right.shape[-2]:
        raise bind_error(f"the inner sizes of {text(left)} and {text(right)} differ")
    return (*left.shape[:-1], right.shape[-1])


def _added(item: PlanTensor, shape: Shape) -> Shape:
    if broadcast(item.shape, shape) != shape:
        raise bind_error(f"input {text(item)} does not broadcast to the product {shape}")
    return shape


def _filtered(values: Values, dimensions: int) -> tuple[PlanTensor, PlanTensor]:
    rank = dimensions + 2
    return tensor(values, "input", rank=rank), tensor(values, "weight", rank=rank)


def _padding(values: Values, dimensions: int, stride: Shape, spans: Shape) -> Shape:
    value = values["padding"]
    if value == "valid":
        return (0,) * dimensions
    if value == "same":
        if any(step != 1 for step in stride):
            raise bind_error('padding="same" needs stride 1')
        return tuple(span - 1 for span in spans)
    if isinstance(value, str):
        raise bind_error(f'padding is "same", "valid" or whole numbers, not {describe(value)}')
    return tuple(2 * size for size in options(values, "padding", dimensions, least=0))


def _pooled(values: Values, dimensions: int, dilation: Shape) -> Shape:
    source = tensor(values, "input", rank=dimensions + 2)
    kernel = options(values, "kernel_size", dimensions, least=1)
    padding = options(values, "padding", dimensions, least=0)
    has_stride = values["stride"] is not None
    stride = options(values, "stride", dimensions, least=1) if has_stride else kernel
    is_ceil = flag(values, "ceil_mode")
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise bind_error("padding can be at most half of kernel_size")
    found = []
    for size, k, s, p, d in zip(source.shape[2:], kernel, stride, padding, dilation, strict=True):
        room = size + 2 * p - d * (k - 1) - 1
        count = (room + s - 1 if is_ceil else room) // s + 1
        # A window that would start in the padding behind the input is left out.
        if is_ceil and (count - 1) * s >= size + p:
            count -= 1
        found.append(_at_least_one(count, source))
    return (*source.shape[:2], *found)


def _check_heads(query: PlanTensor, key: PlanTensor, value: PlanTensor, is_grouped: bool) -> None:
    if is_grouped:
        groups, rest = query.shape[-3] % key.shape[-3], query.shape[:-3] == key.shape[:-3]
        fits = groups == 0 and rest and key.shape[:-2] == value.shape[:-2]
    else:
        fits = query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    if not fits:
        raise bind_error(
            f"query {text(query)}, key {text(key)} and value {text(value)} differ in batch or "
            "heads; heads of key and value may be fewer with enable_gqa=True"
        )


def _check_mask(values: Values, scores: Shape) -> None:
    is_causal = flag(values, "is_causal")
    if values["attn_mask"] is None:
        return
    mask = tensor(values, "attn_mask")
    if is_causal:
        raise bind_error("attn_mask and is_causal=True exclude each other")
    if len(mask.shape) < 2 or broadcast(mask.shape, scores) != scores:
        raise bind_error(f"attn_mask {text(mask)} does not broadcast to {scores}")


def _check_vector(values: Values, name: str, size: int) -> None:
    if values[name] is None:
        return
    vector = tensor(values, name)
    if vector.shape != (size,):
        raise bind_error(f"{name} must have the shape ({size},), not {text(vector)}")


def _in_range(value: Value, name: str, least: int) -> int:
    number = whole(value, name)
    if not least <= number <= _MAX_OPTION:
        raise bind_error(f"{name} must be {least} or more, below 2 ** 31, not {number}")
    return number


def _at_least_one(size: int, source: PlanTensor) -> int:
    if size < 1:
        raise bind_error(f"input {text(source)} is too small: the result would be empty")
    return size
