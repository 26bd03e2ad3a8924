"""`kfoundry devices`: what this machine (or an evaluator elsewhere) can do, and why not more."""

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from kernel_foundry.cli.main import EXIT_MISSING_PART
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.domain.device import Capabilities, Peaks
from kernel_foundry.domain.plain import to_plain


@click.command()
@json_option
@target_options
def command(as_json: bool, **targets: Any) -> int:
    """Show devices with their measured peaks, what is missing and why, and what isolates.

    Exit code 3 when there is no device to run on.
    """
    with open_foundry(**targets) as foundry:
        capabilities = foundry.capabilities()
    if as_json:
        json.dump(to_plain(capabilities), sys.stdout)
        sys.stdout.write("\n")
    else:
        _show(Console(), capabilities)
    return 0 if capabilities.devices else EXIT_MISSING_PART


def _show(console: Console, capabilities: Capabilities) -> None:
    table = Table("device", "name", "compute units", "local memory", "cache", "measured peaks")
    for device in capabilities.devices:
        table.add_row(
            device.id,
            f"{device.name} ({device.driver_version})",
            str(device.compute_units),
            f"{device.shared_bytes >> 10} KiB",
            f"{device.cache_bytes >> 20} MiB",
            _peaks(device.peaks),
        )
    console.print(table)
    for kind in capabilities.availability:
        if not kind.available:
            console.print(
                f"{kind.kind}: not available: {kind.reason}", style="yellow", markup=False
            )
    isolation = capabilities.isolation
    console.print(f"isolation: {', '.join(isolation.mechanisms) or 'none'}")
    for missing in isolation.missing:
        console.print(f"  without {missing}", style="dim", markup=False)
    console.print(", ".join(capabilities.versions), style="dim", markup=False)


def _peaks(peaks: Peaks | None) -> str:
    if peaks is None:
        return "not measured yet"
    return (
        f"{peaks.bandwidth_bytes_per_second / 1e9:.1f} GB/s, "
        f"{peaks.flops_per_second / 1e9:.0f} GFLOP/s, launch {peaks.launch_ns / 1e3:.1f} µs"
    )
