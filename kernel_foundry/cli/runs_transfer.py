"""`kfoundry runs export` and `import`: copy a run from store to store as one file."""

from pathlib import Path

import click

from kernel_foundry.cli.options import json_option, store_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.local.archive import export_run, import_run


@click.command("export")
@click.argument("run", default="")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="File to write, such as softmax.run.gz.",
)
@store_option
@json_option
def export_command(run: str, out: Path, store: str, as_json: bool) -> int:
    """Write a run to one file: its task and settings, and all its evaluations in order.

    The file is gzipped JSON Lines and holds everything that the store has of the run. Another store
    can read it with `runs import`, and continue the run. An active run is written in its present
    state. This needs direct access to the store: for one behind an archive service, run it on the
    service's host.

    \b
    kfoundry runs export softmax-1 --out softmax-1.run.gz
    kfoundry runs export --store postgresql://me@db/runs --out newest.run.gz
    """  # noqa: D301  a backspace keeps click from joining the lines
    copied = export_run(store, run, out)
    if as_json:
        print_json({"run": copied.name, "evaluations": copied.evaluation_count, "file": str(out)})
    else:
        print_text(f"{copied.name}: {counted(copied.evaluation_count, 'evaluation')} in {out}")
    return 0


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--as", "name", default="", help="New name of the run.  [default: the name in the file]"
)
@store_option
@json_option
def import_command(file: Path, name: str, store: str, as_json: bool) -> int:
    """Copy a run from FILE, written by `runs export`, into the store: all of it or nothing.

    Everything is checked before anything is written. If the store has an equal run of that name,
    nothing changes; if it has a different one, the import is refused: --as gives the new run
    another name.

    \b
    kfoundry runs import softmax-1.run.gz
    kfoundry runs import softmax-1.run.gz --as softmax-again
    kfoundry optimize --resume --run softmax-1       continues it
    """  # noqa: D301  a backspace keeps click from joining the lines
    copied = import_run(store, file, name=name)
    if as_json:
        answer = {"run": copied.name, "evaluations": copied.evaluation_count, "new": copied.is_new}
        print_json(answer)
    elif copied.is_new:
        print_text(f"{copied.name}: {counted(copied.evaluation_count, 'evaluation')}")
    else:
        print_text(f"{copied.name} already exists, equal to the file")
    return 0
