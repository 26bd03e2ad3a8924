"""The archive in this process, and operations on its stores that the port does not have."""

from pathlib import Path
from typing import TYPE_CHECKING

from kernel_foundry.paths import store_url
from kernel_foundry.ports import Archive

if TYPE_CHECKING:
    from archive_svc.run.replay import RunReplay as RunReplay  # noqa: PLC0414  sdk.replay's
    from archive_svc.run.run_file import RunCopy


def local_archive(store: str) -> Archive:
    """Open the store at a URL ("" for the default).

    Raises:
        As `archive_svc.archive.LocalArchive`.
    """
    from archive_svc.archive import LocalArchive

    return LocalArchive(store or store_url())


def export_run(store: str, run: str, path: Path) -> "RunCopy":
    """Write a run ("" for the newest) of the store at a URL ("" for the default) to a file.

    Raises:
        As `archive_svc.run.run_file.export_run`.
    """
    from archive_svc.run.run_file import export_run as export

    return export(store or store_url(), run, path)


def import_run(store: str, path: Path, *, name: str = "") -> "RunCopy":
    """Take a run from a file into the store at a URL ("" for the default).

    Raises:
        As `archive_svc.run.run_file.import_run`.
    """
    from archive_svc.run.run_file import import_run as take_in

    return take_in(store or store_url(), path, name=name)


def replay_into(store: str, run: str, into: str) -> "RunReplay":
    """Return a run ("" for the newest) of one store, to be made again in another; close it.

    Raises:
        As `archive_svc.run.replay.RunReplay`.
    """
    from archive_svc.run.replay import RunReplay

    return RunReplay(store, run, into)
