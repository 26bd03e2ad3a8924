"""A limit on the host memory that a piece of Python code may take, for what is not to be trusted.

Of private, writable memory alone (`RLIMIT_DATA`): what a driver reserves does not count.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = resource.getpagesize()
_STATUS: Final = Path("/proc/self/statm")
_DATA_FIELD: Final = 5
"""Pages of private, writable memory, with the stack."""


@contextmanager
def memory_limit(size_bytes: int) -> Iterator[None]:
    """Let the body take `size_bytes` beyond what the process has; more cannot be allocated.

    An allocation beyond it fails as one does that finds no memory: of Python with a `MemoryError`,
    of torch with a `RuntimeError`.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    held = int(_STATUS.read_text(encoding="ascii").split()[_DATA_FIELD]) * _PAGE_BYTES
    limits = [held + size_bytes, *(value for value in before if value != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
