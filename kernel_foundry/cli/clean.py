"""`kfoundry clean`: list the files on this machine, and remove caches and leftovers."""

from collections.abc import Iterable

import click

from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.sdk.local_files import StoredFiles, clean, removable, user_data


@click.command()
@click.option("--dry-run", is_flag=True, help="Remove nothing; list all files and their sizes.")
@json_option
def command(dry_run: bool, as_json: bool) -> int:
    """Remove caches, and temporary files of dead processes.

    Runs, lessons, reports and the signing key stay: `kfoundry runs delete` deletes runs. The next
    evaluation takes longer, because peaks are measured and tasks are admitted again.

    \b
    kfoundry clean --dry-run
    """  # noqa: D301  a backspace keeps click from joining the lines
    can_go, stays = removable(), user_data()
    if not dry_run:
        clean()
    if as_json:
        answer = {"removed": _objects(can_go), "kept": _objects(stays), "dry_run": dry_run}
        print_json(answer)
        return 0
    print_text("would be removed:" if dry_run else "removed:")
    _show(can_go)
    print_text(f"kept (`{as_called('runs delete RUN')}` removes a run):")
    _show(stays)
    return 0


def _show(files: Iterable[StoredFiles]) -> None:
    lines = [f"  {_size(one.size_bytes):>9}  {one.path}  {one.what}".rstrip() for one in files]
    print_text("\n".join(lines) or "  nothing")


def _objects(files: Iterable[StoredFiles]) -> list[dict[str, str | int]]:
    return [
        {"what": one.what, "path": str(one.path), "size_bytes": one.size_bytes} for one in files
    ]


def _size(size_bytes: int) -> str:
    size = float(size_bytes)
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
