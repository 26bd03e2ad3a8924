"""How much private memory a process and its children hold, as Linux counts it.

RLIMIT_DATA counts what may be written now: memory that was written and then made read-only is
forgotten there, and a process may do so again and again.
"""

from pathlib import Path
from typing import Final

_COUNTED: Final = ("RssAnon:", "VmSwap:")
"""Neither files nor what others share with it."""


def private_bytes(process_id: int) -> int:
    """Return what a process and all below it hold; 0 when it has ended.

    bubblewrap has the process that it wraps as its grandchild.
    """
    total, waiting = 0, [str(process_id)]
    while waiting:
        process = waiting.pop()
        status = _read(f"/proc/{process}/status").splitlines()
        total += sum(int(line.split()[1]) << 10 for line in status if line.startswith(_COUNTED))
        waiting += _read(f"/proc/{process}/task/{process}/children").split()
    return total


def _read(path: str) -> str:
    """What an entry says; nothing when the process has just ended, or has no such entry."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
