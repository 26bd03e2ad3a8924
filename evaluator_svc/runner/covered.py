"""Memory hidden from `prepare`: inputs and outputs of all calls.

A kernel of `prepare` gets parameters alone, but the tensors of a call lie a known distance behind
them: what it took from there would be work of that call, done where no time counts, and outputs of
the call before are the answer where inputs have not changed.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

CoveredRange = tuple[int, int, bool, str]
"""Address, bytes, whether kernels may only read it, and the tensor's name."""


@contextmanager
def covered(device: Any, ranges: Iterable[CoveredRange]) -> Iterator[None]:
    """Hide ranges from kernels meanwhile.

    On a CPU an access is told by `check_trespass`; on a GPU random bits are found there.

    Args:
        device: Native device.
        ranges: Each alone in its pages.
    """
    import kernel_foundry_native as native

    cover = device.cover(list(ranges))
    cover.hide()
    try:
        yield
    except BaseException:
        with suppress(native.LaunchError):  # a device that failed shows nothing any more
            cover.show()
        raise
    cover.show()
