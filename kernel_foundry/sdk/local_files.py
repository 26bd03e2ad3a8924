"""The files of the system on this machine, their sizes, and which can be removed.

Caches and leftovers can always go: what is needed of them is made again. Runs, lessons and keys are
their user's.
"""

import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernel_foundry.errors import StoreUnavailableError
from kernel_foundry.paths import cache_dir, data_dir, report_path, sweeps_dir
from kernel_foundry.scratch import folder_bytes, leftovers, remove_leftovers

_CACHES: Final = {
    "objects": "object code of candidates",
    "facts": "admissions and measured peaks",
    "inductor": "what torch.compile built for baselines",
}
"""Folders of the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFiles:
    """Files or a folder of one purpose."""

    what: str
    path: Path
    size_bytes: int


def removable() -> tuple[StoredFiles, ...]:
    """Return the caches, and temporary files of dead processes."""
    caches = [
        StoredFiles(what=what, path=path, size_bytes=folder_bytes(path))
        for name, what in _CACHES.items()
        if (path := cache_dir() / name).exists()
    ]
    left = [
        StoredFiles(what="left by a process that died", path=one.path, size_bytes=one.size_bytes)
        for one in leftovers()
    ]
    return (*caches, *left)


def user_data() -> tuple[StoredFiles, ...]:
    """Return what lies in the data folder: runs, exchanges, sweeps, reports, lessons, the key."""
    if not data_dir().is_dir():
        return ()
    return tuple(
        StoredFiles(
            what=_WHAT.get(path.name, ""),
            path=path,
            size_bytes=folder_bytes(path) if path.is_dir() else path.stat().st_size,
        )
        for path in sorted(data_dir().iterdir())
    )


def clean() -> None:
    """Remove what `removable` lists, and give the disk what deleted runs took in the stores.

    Raises:
        StoreUnavailableError: a store is in use; the rest is done.
    """
    for name in _CACHES:
        shutil.rmtree(cache_dir() / name, ignore_errors=True)
    remove_leftovers()
    for store in data_dir().glob("*.db"):
        try:
            with sqlite3.connect(store) as connection:
                connection.execute("VACUUM")
            connection.close()
        except sqlite3.Error as error:
            raise StoreUnavailableError(
                f"the store {store} cannot be made smaller now: {error}", url=str(store)
            ) from error


def remove_run_files(run: str) -> None:
    """Remove a run's landscapes, report and record from this machine."""
    shutil.rmtree(sweeps_dir(run), ignore_errors=True)
    for suffix in (".html", ".record.json"):
        report_path(run, suffix).unlink(missing_ok=True)


def rename_run_files(run: str, new_name: str) -> None:
    """Rename a run's landscapes, report and record to the run's new name."""
    remove_run_files(new_name)  # of a run that is gone
    pairs = [(sweeps_dir(run), sweeps_dir(new_name))]
    pairs += [
        (report_path(run, suffix), report_path(new_name, suffix))
        for suffix in (".html", ".record.json")
    ]
    for old, new in pairs:
        if old.exists():
            old.rename(new)


_WHAT: Final = {
    "runs.db": "runs",
    "generator.db": "spending, lessons, guidance",
    "exchanges": "what models were asked and answered",
    "suites.db": "where suites stand",
    "matrix": "verdicts on suites' winners on other devices",
    "jobs": "what was submitted, and what it said",
    "tokens.json": "tokens of services",
    "sweeps": "landscapes of sweeps",
    "reports": "reports and records",
    "evaluator.key": "key that signs verdicts",
}
