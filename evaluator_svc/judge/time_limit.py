"""A limit on how long a piece of Python code may take, for what cannot be asked to stop.

By a signal, which only the main thread can have: the judge works there.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimitError(BaseException):
    """The limit was reached. No `Exception`, which some code catches to go on in another way.

    Args:
        seconds: The limit.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not done after {seconds:g} s")
        self.seconds = seconds


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise within the body once `seconds` have passed; 0 is no limit.

    Raises:
        TimeLimitError: the limit was reached.
    """
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return

    def reached(_number: int, _frame: FrameType | None) -> None:
        raise TimeLimitError(seconds)

    before = signal.signal(signal.SIGALRM, reached)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
