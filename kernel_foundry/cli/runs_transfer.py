"""`kfoundry runs export` and `import`: a run as one file, from store to store."""

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

    The file is gzipped JSON Lines and holds all that the store knows of the run, so that another
    store can take it in with `runs import`, go on with it, or only look. A run that still
    goes on is written as it stands. The store must be reachable from here: for one behind an
    archive service run this where the service runs.

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
    """Take a run from FILE, which `runs export` wrote, into the store: all of it or nothing.

    Everything is checked before anything is written. A run that is there already and equal is left
    as it is; one that differs is refused, and --as gives the new one another name.

    \b
    kfoundry runs import softmax-1.run.gz
    kfoundry runs import softmax-1.run.gz --as softmax-again
    kfoundry optimize --resume --run softmax-1       goes on with it
    """  # noqa: D301  a backspace keeps click from joining the lines
    copied = import_run(store, file, name=name)
    if as_json:
        answer = {"run": copied.name, "evaluations": copied.evaluation_count, "new": copied.is_new}
        print_json(answer)
    elif copied.is_new:
        print_text(f"{copied.name}: {counted(copied.evaluation_count, 'evaluation')}")
    else:
        print_text(f"{copied.name} was there already, equal to the file")
    return 0
