"""The landscapes of a run's sweeps, kept as T4 files: one for each candidate that was swept.

They lie in `paths.sweeps_dir(run)`, named by the first twelve digits of the candidate's digest.
It hears of sweeps as a listener; the loop makes them in `loop/sweeping.py`.
"""

import json
from pathlib import Path
from typing import Final

from kernel_foundry.paths import sweeps_dir
from kernel_foundry.sdk.loop.progress import Event, Listener, SweepEvent, UnsavedSweepEvent
from kernel_foundry.sdk.report.t4 import t4_results
from kernel_foundry.whole_file import replace_file

_DIGEST_DIGITS: Final = 12


def keeping_sweeps(run: str, listener: Listener) -> Listener:
    """Return a listener that keeps each sweep of `run`, then tells `listener` of the event.

    What cannot be written, on a full disk for instance, does not end the run: `listener` hears of
    an `UnsavedSweepEvent` before the sweep itself.
    """

    def listen(event: Event) -> None:
        if isinstance(event, SweepEvent) and event.results:
            path = sweeps_dir(run) / f"{event.candidate.digest[:_DIGEST_DIGITS]}.json"
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, json.dumps(t4_results(event.results), indent=1) + "\n")
            except OSError as error:
                reason = error.strerror or str(error)
                listener(UnsavedSweepEvent(candidate=event.candidate, path=path, reason=reason))
        listener(event)

    return listen


def kept_sweeps(run: str) -> tuple[Path, ...]:
    """Return the files of the landscapes kept of `run` on this machine, in order of name."""
    return tuple(sorted(sweeps_dir(run).glob("*.json")))
