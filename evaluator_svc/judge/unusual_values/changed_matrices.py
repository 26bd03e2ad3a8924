"""Matrices and graphs on which iterations converge slowly.

What becomes of single elements is in `changed_values.py`.
"""

from typing import Final

import torch

from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.tensors.structure import is_symmetric
from evaluator_svc.judge.tensors.tensor_parts import BLOCK_ELEMENTS, EXPONENTS, generator_of

_LEAST_COUPLING: Final = 4
"""Least that BLOCKS takes away from the exponents of elements between two blocks."""
_LEAST_MATRIX: Final = 4
"""Rows and columns of what has blocks."""
_SIDE_EXPONENT: Final = 4
"""Most that the exponents of a symmetric matrix's rows and columns change by in MAGNITUDES."""


def two_blocks(tensor: torch.Tensor) -> torch.Tensor:
    """Return matrices in two blocks each, at random, with small elements beside them.

    On one side smaller than on the other: what balances, orthogonalises or follows the largest of
    two near values takes many rounds. Symmetric ones stay so.
    """
    if tensor.ndim < 2 or min(tensor.shape[-2:]) < _LEAST_MATRIX:
        return tensor
    rows, cols = tensor.shape[-2:]
    matrices, generator = tensor.reshape(-1, rows, cols), generator_of(tensor)
    most, device = EXPONENTS.get(tensor.dtype, 2), tensor.device

    def drawn(low: int, high: int) -> torch.Tensor:
        """Return a whole number for each matrix, shape (matrices, 1, 1)."""
        shape = (len(matrices), 1, 1)
        return torch.randint(low, high + 1, shape, generator=generator, device=device)

    split_row = drawn(rows // 4, rows - rows // 4)
    split_col = split_row if rows == cols else drawn(cols // 4, cols - cols // 4)
    above = drawn(min(_LEAST_COUPLING, most), most)
    is_symmetric = rows == cols and torch.equal(tensor, tensor.mT)
    below = above if is_symmetric else drawn(0, most)
    is_low = torch.arange(rows, device=device)[:, None] >= split_row
    is_right = torch.arange(cols, device=device) >= split_col
    result = torch.empty_like(matrices, memory_format=torch.contiguous_format)
    count = max(BLOCK_ELEMENTS // (rows * cols), 1)
    for first in range(0, len(matrices), count):
        part = slice(first, first + count)
        taken = torch.where(~is_low[part] & is_right[part], above[part], 0)
        taken = torch.where(is_low[part] & ~is_right[part], below[part], taken)
        result[part] = torch.ldexp(computable(matrices[part]), -taken).to(tensor.dtype)
    return result.reshape(tensor.shape)


def is_graph(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds square matrices of zeros and ones, any number in a row."""
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < _LEAST_MATRIX:
        return False
    tensor = computable(tensor)
    counts = tensor.count_nonzero(-1)
    is_either = bool(((tensor == 0) | (tensor == 1)).all())
    return is_either and bool((counts != counts.reshape(-1)[0]).any())


def cycles(tensor: torch.Tensor) -> torch.Tensor:
    """Return graphs of which each is one cycle through all nodes: no way is longer.

    Symmetric ones lead both ways. The seed follows from how many edges there were.
    """
    size, device = tensor.shape[-1], tensor.device
    result = torch.zeros_like(tensor, memory_format=torch.contiguous_format)
    generator = torch.Generator(device).manual_seed(int(tensor.count_nonzero()))
    both_ways = is_symmetric(tensor)
    for graph in result.view(-1, size, size):
        order = torch.randperm(size, generator=generator, device=device)
        graph[order, order.roll(-1)] = 1
        if both_ways:
            graph[order.roll(-1), order] = 1
    return result


def scaled_sides(tensor: torch.Tensor) -> torch.Tensor:
    """Return symmetric matrices whose rows and columns are multiplied by powers of two alike.

    What is positive definite stays so; eigenvalues get far apart.
    """
    most, generator = min(EXPONENTS.get(tensor.dtype, 2), _SIDE_EXPONENT), generator_of(tensor)
    sides = torch.randint(
        -most, most + 1, tensor.shape[:-1], generator=generator, device=tensor.device
    )
    exponents = sides[..., :, None] + sides[..., None, :]
    return torch.ldexp(computable(tensor), exponents).to(tensor.dtype)
