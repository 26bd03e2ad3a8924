"""Progress lines on stderr about admissions and verdicts of an evaluator in this process."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from typing import Final

from kernel_foundry.cli.output import print_text

WORK_LOG: Final = "evaluator_svc.work_log"
"""Logger of the begin and the end of each admission and verdict."""

_STILL_SECONDS: Final = 30.0
"""Seconds without a line after which the elapsed time is printed."""


@contextlib.contextmanager
def work_lines() -> Iterator[None]:
    """Print a line when work begins and when it ends, and the elapsed time in between.

    A remote evaluator writes these lines to its own log.
    """
    logger = logging.getLogger(WORK_LOG)
    handler, level, propagates = _Printer(), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    ended = threading.Event()
    ticker = threading.Thread(target=handler.print_elapsed, args=(ended,), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()
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

    def print_elapsed(self, ended: threading.Event) -> None:
        """Say how long it has taken so far, until it has ended."""
        while not ended.wait(_STILL_SECONDS):
            print_text(f"{time.monotonic() - self._began_s:.0f} s so far …", err=True)
