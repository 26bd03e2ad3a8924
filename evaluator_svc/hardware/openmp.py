"""How many threads torch works with, set without torch's own `set_num_threads`.

After that call oneMKL no longer sees that it is inside a parallel loop: a batch of large matrices
is then factorised with wrong pivots (`torch.linalg.solve`, `inv`, `det`; pytorch/pytorch#142815).
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch


def set_threads(count: int) -> None:
    """Have `count` threads in the loops of this thread; `torch.get_num_threads` tells them."""
    if torch.backends.openmp.is_available():  # type: ignore[no-untyped-call]  # torch's own
        _library().omp_set_num_threads(ctypes.c_int(count))
    else:
        torch.set_num_threads(count)


@cache
def _library() -> Any:
    """What finds the OpenMP library that torch itself is linked with."""
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
