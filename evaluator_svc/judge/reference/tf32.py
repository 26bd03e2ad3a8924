"""TF32, switched on for the reference of tasks that allow it; its cost is in `cut_operands.py`.

TF32 keeps 10 of a float32's 23 bits of mantissa in the operands of a product, and adds up in
float32.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def tf32_allowed(device: torch.device, *, allowed: bool) -> Iterator[None]:
    """While active, PyTorch's products and convolutions on `device` may use TF32, or may not.

    On the CPU nothing is touched: there the same switches choose among other kernels.
    """
    if device.type != "cuda":
        yield
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before
