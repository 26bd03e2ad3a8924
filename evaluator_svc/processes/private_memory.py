"""The private memory of a process and its children, as Linux counts it.

RLIMIT_DATA counts only memory that may be written now. A process could write memory, make it
read-only and take more, again and again.
"""

from pathlib import Path
from typing import Final

_COUNTED: Final = ("RssAnon:", "VmSwap:")
"""Lines of memory that is neither of files nor shared with others."""


def private_bytes(process_id: int) -> int:
    """Return the private bytes of a process and all its descendants; 0 if it has ended.

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
    """Return the text of an entry; "" if the process has just ended, or has no such entry."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
