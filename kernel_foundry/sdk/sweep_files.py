"""The landscapes of a run's sweeps as T4 files: one for each candidate that was swept.

They are in `paths.sweeps_dir(run)`, named by the first twelve digits of the candidate's digest.
A listener writes them; the loop makes the sweeps in `loop/sweeping.py`.
"""

import json
from pathlib import Path
from typing import Final

from kernel_foundry.paths import sweeps_dir
from kernel_foundry.sdk.loop.progress import Event, Listener, SweepEvent, UnsavedSweepEvent
from kernel_foundry.sdk.report.t4 import t4_results
from kernel_foundry.whole_file import replace_file

_DIGEST_DIGITS: Final = 12


def sweep_writer(run: str, listener: Listener) -> Listener:
    """Return a listener that writes each sweep of `run`, then passes the event to `listener`.

    A failure to write, on a full disk for instance, does not end the run: `listener` gets
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


def sweep_paths(run: str) -> tuple[Path, ...]:
    """Return the files of the landscapes of `run` on this machine, in order of name."""
    return tuple(sorted(sweeps_dir(run).glob("*.json")))
