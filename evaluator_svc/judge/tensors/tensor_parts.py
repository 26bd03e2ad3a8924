"""A tensor worked on in blocks and in rows, and what follows from its values and its format.

In blocks a large tensor takes no more than its changed copy.
"""

from collections.abc import Callable
from typing import Final

import torch

from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.tensors.scales import CHUNK_ELEMENTS, cached_elements

LARGE_FACTOR: Final = {
    torch.float16: 8.0,
    torch.bfloat16: 8.0,
    torch.float8_e4m3fn: 2.0,
    torch.float8_e5m2: 8.0,
}
"""Of formats that hold less than 64 times what is usual."""
LEAST_ROW: Final = 16
"""Elements of a row; shorter ones are taken together."""
EXPONENTS: Final = {torch.float32: 10, torch.float64: 10, torch.bfloat16: 10}
"""Most that MAGNITUDES adds to an exponent, or takes away; 2 in formats of few exponents."""
BLOCK_ELEMENTS: Final = 1 << 22
"""Elements worked on at a time."""


def by_block(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return a tensor whose blocks of elements are changed one after the other."""
    result = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    flat = result.view(-1)
    for index, part in enumerate(blocks_of(tensor)):
        changed = change(computable(part)).to(tensor.dtype)
        flat[index * BLOCK_ELEMENTS :][: part.numel()] = changed
    return result


def by_cached_part(
    tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return a tensor of which each element was changed to one of the same format.

    `change` sees parts of it in order; of one that is not contiguous, the whole.
    """
    count = cached_elements(tensor.device)
    if tensor.numel() <= count or not tensor.is_contiguous():
        return change(tensor)
    result = torch.empty_like(tensor)
    to = result.view(-1)
    for index, part in enumerate(torch.split(tensor.view(-1), count)):
        to[index * count :][: len(part)] = change(part)
    return result


def by_row(
    tensor: torch.Tensor, change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return a tensor of which each row changes by a number of its own, drawn between 0 and 1.

    The first and the last row have the ends of that stretch.
    """
    rows = rows_of(tensor)
    shape, device = (len(rows), 1), tensor.device
    drawn = torch.rand(shape, generator=generator_of(tensor), device=device)
    drawn[-1:], drawn[:1] = 0.0, 1.0
    result = torch.empty_like(rows, memory_format=torch.contiguous_format)
    count = max(BLOCK_ELEMENTS // rows.shape[1], 1)
    for first in range(0, len(rows), count):
        part = slice(first, first + count)
        result[part] = change(computable(rows[part]), drawn[part]).to(tensor.dtype)
    return result.reshape(tensor.shape)


def by_lines(
    tensor: torch.Tensor,
    change: Callable[[torch.Tensor], torch.Tensor],
    *,
    of_columns: bool,
) -> torch.Tensor:
    """Return a tensor whose rows were changed; or its columns, and half of its samples as wholes.

    A column is all that has one place on the last axis, a sample all that has one on the first.
    One of two axes has columns alone, and one of a single axis stays then.
    """
    if not of_columns:
        return change(tensor)
    if tensor.ndim < 2:
        return tensor
    result = tensor.clone(memory_format=torch.contiguous_format)
    count = len(tensor) // 2 if tensor.ndim > 2 else 0
    if count:
        samples = result[:count].view(count, -1)
        samples.copy_(change(samples))
    columns = result[count:].view(-1, tensor.shape[-1])
    columns.copy_(change(columns.T).T)
    return result


def rows_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of elements as `(rows, width)`; short rows are taken together."""
    width = tensor.shape[-1] if tensor.ndim else 1
    return tensor.reshape(-1, width if width >= LEAST_ROW else tensor.numel())


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view that can be gathered and scattered; PyTorch does neither with 8-bit floats."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor


def root_mean_square(tensor: torch.Tensor) -> float:
    """Return the root mean square of the elements that are finite."""
    squares = sum(
        float(torch.where(part.isfinite(), part, 0.0).double().square_().sum())
        for part in parts_of(tensor)
    )
    return float((squares / tensor.numel()) ** 0.5)


def parts_of(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return a tensor's elements in blocks, in a format that PyTorch computes in."""
    return tuple(map(computable, blocks_of(tensor)))


def blocks_of(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return a tensor's elements in blocks: views of them where the tensor is contiguous."""
    return torch.split(tensor.reshape(-1), BLOCK_ELEMENTS)


def all_finite(tensor: torch.Tensor) -> bool:
    """Return whether all values are finite, in parts; a sum that is one says so at once."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return True  # and a sum of integers might overflow, which is nobody's fault
    parts = map(computable, torch.split(tensor.reshape(-1), CHUNK_ELEMENTS))
    return all(bool(part.sum().isfinite()) or bool(part.isfinite().all()) for part in parts)


def none_is_nan(tensor: torch.Tensor) -> bool:
    """Return whether all values are numbers or infinities, in parts."""
    if not tensor.is_floating_point():
        return True
    parts = map(computable, torch.split(tensor.reshape(-1), CHUNK_ELEMENTS))
    return not any(bool(part.isnan().any()) for part in parts)


def random_signs(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return 1 or -1 for each element."""
    drawn = torch.randint(0, 2, values.shape, generator=generator, device=values.device)
    return (2 * drawn - 1).to(values.dtype)


def generator_of_stream(stream: int, seed: int, device: torch.device) -> torch.Generator:
    """Return a generator for one kind of draws; `stream` tells them from others of the seed."""
    return torch.Generator(device).manual_seed((seed ^ stream) % 2**63)


def generator_of(values: torch.Tensor) -> torch.Generator:
    """Return a generator whose seed differs between draws."""
    first = computable(values.flatten()[:LEAST_ROW]).float()
    first = first.nan_to_num(posinf=0.0, neginf=0.0)
    seed = int(first.view(torch.int32).to(torch.int64).sum()) % 2**31
    return torch.Generator(values.device).manual_seed(seed)
