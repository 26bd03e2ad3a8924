"""The random numbers that decide about timed calls: which set, whose inputs, kept or not.

A kernel on the CPU can read all memory of its process, but makes no system call. So they lie in a
file that the runner reads call by call and never maps, and the runner never learns their seed.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from typing import Final

_DRAW_BYTES: Final = 12
"""Three numbers of 32 bits (`native/src/call_draws.hpp`)."""
_CALLS: Final = 1 << 12
"""The sequence repeats after 4096 calls; no kernel knows it then either."""


def call_draws(seed: int) -> bytes:
    """Return the content of the file; the judge compares the runner's choices with it."""
    return hashlib.shake_256(seed.to_bytes(8)).digest(_DRAW_BYTES * _CALLS)


@contextlib.contextmanager
def call_draws_file(seed: int) -> Iterator[int]:
    """Give the descriptor of a file in memory that holds what follows from `seed`."""
    descriptor = os.memfd_create("draws")
    try:
        data = memoryview(call_draws(seed))
        while data:
            data = data[os.write(descriptor, data) :]
        yield descriptor
    finally:
        os.close(descriptor)
