"""A service as a process of its own: logging, the event loop, and how it ends."""

import asyncio
import logging
import sys
from collections.abc import Coroutine
from typing import Any

from kernel_foundry.errors import KernelFoundryError, StatusCode

_BAD_INPUT = 2
_MISSING_PART = 3


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Run `serving` to its end; our own failure ends the process with its message.

    The exit status is 2 for a wrong argument and 3 for something that is missing here.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("kernel_foundry").setLevel(logging.INFO)
    try:
        asyncio.run(serving)
    except KernelFoundryError as error:
        sys.stderr.write(f"error: {error.message}\n")
        is_bad_input = error.code is StatusCode.INVALID_ARGUMENT
        sys.exit(_BAD_INPUT if is_bad_input else _MISSING_PART)
