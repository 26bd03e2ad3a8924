"""How many threads numpy's products have; a judge's template has one, for threads survive no fork.

The library reads the environment when it is loaded, which is before the fork.
"""

import ctypes
import importlib
from typing import Final

_NAMES: Final = (
    "scipy_openblas_set_num_threads64_",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)
"""Of one function; packages of numpy rename what they bring along."""


def set_threads_of_numpy(count: int) -> None:
    """Have `count` threads in numpy's products, where OpenBLAS computes them."""
    library = ctypes.CDLL(importlib.import_module("numpy.linalg._umath_linalg").__file__)
    for name in _NAMES:
        if hasattr(library, name):
            getattr(library, name)(ctypes.c_int(count))
            return
