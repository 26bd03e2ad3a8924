"""Whether torch rounds float32 operands of its library calls to TF32 now."""

from collections.abc import Iterable
from typing import Any

import torch

from kernel_foundry.sdk.export.runtime.plan import LibraryCall, NoKernelError
from kernel_foundry.sdk.export.runtime.task import TF32


def check_tf32(calls: Iterable[LibraryCall]) -> None:
    """Refuse library calls on a GPU that would be rounded otherwise than judged.

    Torch has a switch for convolutions, on unless somebody turns it off, and one for products.

    Raises:
        NoKernelError: one of them is not as judged.
    """
    for is_convolution in {call.function.__name__.startswith("conv") for call in calls}:
        cudnn: Any = torch.backends.cudnn
        switch = getattr(cudnn, "conv", cudnn) if is_convolution else torch.backends.cuda.matmul
        if _is_on(switch) != TF32:
            kind = "convolutions" if is_convolution else "products"
            raise NoKernelError(f"torch's TF32 is {'off' if TF32 else 'on'} for {kind}")


def _is_on(switch: Any) -> bool:
    # Where there are both names, the older one raises an error once the newer one was assigned.
    precision = getattr(switch, "fp32_precision", None)
    return bool(switch.allow_tf32) if precision is None else precision == "tf32"
