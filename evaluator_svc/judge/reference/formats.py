"""Number formats of a reference: the narrowest, and how to make it compute in a wider one.

A reference keeps the formats that it has. For its exact result every cast, factory and state that
it makes on the way is widened as well, so that a state made in `forward` does not meet a float64
parameter in float32.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Self

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

FLOAT8: Final = (torch.float8_e4m3fn, torch.float8_e5m2)
"""PyTorch stores and casts these, and computes hardly anything in them."""

_BITS: Final[Mapping[torch.dtype, int]] = {
    torch.float64: 53,
    torch.float32: 24,
    torch.float16: 11,
    torch.bfloat16: 8,
    torch.float8_e4m3fn: 4,
    torch.float8_e5m2: 3,
}
"""Bits of mantissa, the leading one counted."""

_CASTS: Final = frozenset({"float", "half", "bfloat16"})
"""Methods of a tensor that are named after a format."""

_PART_ELEMENTS: Final = 1 << 27
"""Elements that are compared at a time."""


def computable(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, in float32 where PyTorch computes nothing in its format."""
    return tensor.float() if tensor.dtype in FLOAT8 else tensor


def same_values(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether two tensors of one type are equal; `torch.equal` does not take all types."""
    if one.shape != two.shape or not (one.is_contiguous() and two.is_contiguous()):
        return torch.equal(computable(one), computable(two))
    # On a GPU torch.equal makes a tensor of booleans, which is a quarter of a large one.
    parts = zip(*(torch.split(t.view(-1), _PART_ELEMENTS) for t in (one, two)), strict=True)
    return all(torch.equal(computable(a), computable(b)) for a, b in parts)


def narrowest(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    """Return the format with the fewest bits of mantissa; float32 if there is none."""
    return min((d for d in dtypes if d in _BITS), key=_BITS.__getitem__, default=torch.float32)


def is_narrow(dtype: torch.dtype) -> bool:
    """Return whether a format has fewer bits of mantissa than float32."""
    return dtype in _BITS and _BITS[dtype] < _BITS[torch.float32]


def widened(value: Any, dtype: torch.dtype) -> Any:
    """Return `value`, a tensor in `dtype` if its format is narrower; all else as it is."""
    is_float = isinstance(value, torch.Tensor) and value.dtype in _BITS
    return value.to(dtype) if is_float and _BITS[value.dtype] < _BITS[dtype] else value


def widen_state(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Widen the parameters and buffers of `model` in place, and return it."""
    widen = partial(widened, dtype=dtype)
    return model._apply(widen)  # type: ignore[no-untyped-call, no-any-return]


class WideningMode(TorchFunctionMode):
    """While active, nothing that goes through PyTorch's Python API is narrower than `dtype`.

    Formats that are asked for by name, in factories and casts, are replaced; tensors that still
    come in narrower, such as those in a list of the module, are cast before they are used.

    Args:
        dtype: float32 or float64.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype
        self._default = torch.get_default_dtype()

    def __enter__(self) -> Self:
        """Make `dtype` the default of factories, too."""
        self._default = torch.get_default_dtype()
        torch.set_default_dtype(self._dtype)
        super().__enter__()  # type: ignore[no-untyped-call]  # torch's own
        return self

    def __exit__(self, *exception: object) -> None:
        """Set the default back."""
        super().__exit__(*exception)  # type: ignore[no-untyped-call]  # torch's own
        torch.set_default_dtype(self._default)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call `func` with everything widened but what it writes to."""
        name = getattr(func, "__name__", "")
        if name in _CASTS and len(args) == 1 and isinstance(args[0], torch.Tensor):
            return args[0].to(self._dtype)
        wide = tree_map(self._wide, (args, dict(kwargs or {})))
        if args and _writes(name):
            wide = ((args[0], *wide[0][1:]), wide[1])
        return func(*wide[0], **wide[1])

    def _wide(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            is_narrower = value in _BITS and _BITS[value] < _BITS[self._dtype]
            return self._dtype if is_narrower else value
        return widened(value, self._dtype)


def _writes(name: str) -> bool:
    """Return whether a function of that name changes its first argument."""
    if name.startswith("__"):
        return name == "__setitem__" or name.startswith("__i")
    return name.endswith("_")
