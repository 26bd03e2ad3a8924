"""`kfoundry selftest`: the system tried on itself."""

from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import (
    device_of,
    json_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json
from kernel_foundry.cli.selftest_progress import CaseProgress
from kernel_foundry.cli.selftest_view import selftest_object, show
from kernel_foundry.sdk.selftest.case_folder import own_cases, read_cases


@click.command()
@click.option(
    "--cheats",
    is_flag=True,
    help="Also judge the project's cheats and their honest look-alikes.",
)
@click.option(
    "--cases",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Judge the cases of this folder instead of the project's; implies --cheats.",
)
@click.option(
    "--device",
    default="",
    help="Device such as sycl:0 or cuda:1, a kind such as cuda, or an evaluator's address.  "
    "[default: one of every kind]",
)
@json_option
@target_options
def command(cheats: bool, folder: Path | None, device: str, as_json: bool, **targets: Any) -> int:
    """Try what must work and what must not: device, clock, sandbox; with --cheats the verdict.

    By default every device kind of the evaluator is tried. A folder of cases has task files,
    candidates NAME.md and an expected.json that says for each NAME which outcomes are right:
    docs/selftest.md tells more. CUDA cases without a GPU are judged where their build decides.

    \b
    kfoundry selftest
    kfoundry selftest --cheats
    kfoundry selftest --cases my_cases --device sycl:0 --json

    Exit code 0 when all is well, 1 when something is not, 3 without a device.
    """  # noqa: D301  a backspace keeps click from joining the lines
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    cases = read_cases(folder) if folder else own_cases() if cheats else ()
    with open_foundry(**targets) as foundry, CaseProgress(total=len(cases)) as progress:
        found = foundry.selftest(device=device, cases=cases, listener=progress.on)
    if as_json:
        print_json(selftest_object(found))
    else:
        show(PrintableConsole(), found)
    return 0 if found.passed else 1
