"""Ends a service's process that does not end by itself."""

import logging
import os
import threading
import time

from kernel_foundry.scratch import remove_own

_log = logging.getLogger(__name__)


def end_process_in(seconds: float, *, status: int) -> None:
    """End this process after a while, whatever it does then; its children end with it.

    Where it ends in order before that, nothing happens.

    Args:
        seconds: From now.
        status: Its exit status then.
    """

    def end() -> None:
        time.sleep(seconds)
        _log.warning("work that was in progress is given up")
        remove_own()
        os._exit(status)

    threading.Thread(target=end, name="hard-end", daemon=True).start()
