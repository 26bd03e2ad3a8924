"""Lines on stderr about admissions and verdicts of an evaluator in this process, as they go on."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from typing import Final

from kernel_foundry.cli.output import print_text

WORK_LOG: Final = "evaluator_svc.work_log"
"""Logger that tells of each admission and verdict as it begins and ends."""

_STILL_SECONDS: Final = 30.0
"""Silence after which a line says that work goes on."""


@contextlib.contextmanager
def work_lines() -> Iterator[None]:
    """Print a line where work begins and where it ends, and one now and then in between.

    Work of an evaluator elsewhere is in the log there.
    """
    logger = logging.getLogger(WORK_LOG)
    handler, level, propagates = _Printer(), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    ended = threading.Event()
    still = threading.Thread(target=handler.say_still, args=(ended,), daemon=True)
    still.start()
    try:
        yield
    finally:
        ended.set()
        still.join()
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates


class _Printer(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._began_s = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line of the log."""
        print_text(record.getMessage(), err=True)

    def say_still(self, ended: threading.Event) -> None:
        """Say how long it has taken so far, until it has ended."""
        while not ended.wait(_STILL_SECONDS):
            print_text(f"{time.monotonic() - self._began_s:.0f} s so far …", err=True)
