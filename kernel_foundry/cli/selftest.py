"""`kfoundry selftest`: test device, clock, sandbox and verdicts."""

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
    help="Also judge the project's known cheats, and honest kernels that resemble them.",
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
    """Test device, clock and sandbox; with --cheats also the verdicts.

    By default one device of every kind is tested. A folder of cases has task files, candidates
    NAME.md and an expected.json with the expected outcomes of each NAME (docs/selftest.md). Without
    a GPU, CUDA cases are only built; those that the build does not decide are not run.

    \b
    kfoundry selftest
    kfoundry selftest --cheats
    kfoundry selftest --cases my_cases --device sycl:0 --json

    Exit code 0 if everything is as expected, 1 if not, 3 without a device.
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
