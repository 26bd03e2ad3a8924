"""`kfoundry devices`: the devices of an evaluator, and what is missing and why."""

from contextlib import nullcontext
from typing import Any, Final

import click
from rich.table import Table

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.main import EXIT_MISSING_PART
from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json
from kernel_foundry.cli.table import numbers, plain_table, whole
from kernel_foundry.domain.device import Capabilities, Peaks
from kernel_foundry.domain.device_class import device_class, is_of_fleet
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.sdk.fleet.host import FleetHost
from kernel_foundry.sdk.fleet.member import MemberState

_SERVING: Final = MemberState.SERVING.value
_LONGEST_REASON: Final = 100
"""Characters of a reason without --verbose."""


@click.command()
@click.option(
    "--verbose", is_flag=True, help="Show full reasons, limits of each process and versions, too."
)
@click.option(
    "--fleet",
    "of_fleet",
    is_flag=True,
    help="Show each evaluator of the fleet that --evaluator names: state, devices, load.",
)
@json_option
@target_options
def command(verbose: bool, of_fleet: bool, as_json: bool, **targets: Any) -> int:
    """Show devices with their measured peaks, what is missing and why, and the sandbox.

    With --verbose, for each kind of process that handles candidates: its sandbox mechanisms, its
    limits, and what is missing and why.

    For several evaluators also the class of each device (times are comparable within a class), the
    calls that use it or wait for it, and the evaluators that get no work. With --fleet one line for
    each evaluator and device, including those that are draining or away. Exit code 3 if there is no
    device to run on.

    \b
    kfoundry devices
    kfoundry devices --evaluator gpuhost:50051 --json
    kfoundry devices --evaluator gpu1:50051,gpu2:50051
    kfoundry devices --fleet --evaluator fleet.yaml
    """  # noqa: D301  a backspace keeps click from joining the lines
    waiting = PrintableConsole(stderr=True).status("measuring devices; the first time takes longer")
    with nullcontext() if as_json else waiting, open_foundry(**targets) as foundry:
        if of_fleet:
            hosts = foundry.hosts()
            _tell_hosts(hosts, as_json=as_json)
            return 0 if any(h.devices and h.state == _SERVING for h in hosts) else EXIT_MISSING_PART
        capabilities = foundry.capabilities()
    if as_json:
        print_json(to_plain(capabilities))
    else:
        _show(PrintableConsole(), capabilities, verbose=verbose)
    return 0 if capabilities.devices else EXIT_MISSING_PART


def _tell_hosts(hosts: tuple[FleetHost, ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"hosts": to_plain(hosts)})
        return
    table = plain_table(
        whole("evaluator"), "state", whole("device"), whole("class"), *numbers("calls"), ""
    )
    for host in hosts:
        devices = [(d.id, d.class_name, str(d.load)) for d in host.devices] or [("", "", "")]
        for place, device in enumerate(devices):
            first = ("", "", "") if place else (host.name, host.state, _cut(host.reason))
            table.add_row(first[0], first[1], *device, first[2])
    PrintableConsole().print(table)


def _show(console: PrintableConsole, capabilities: Capabilities, *, verbose: bool) -> None:
    is_fleet = any(is_of_fleet(device.id) for device in capabilities.devices)
    pending = {load.device: load.pending for load in capabilities.loads}
    table = Table(
        "device",
        *(["class", "calls"] if is_fleet else []),
        "name",
        "compute\nunits",
        "local\nmemory",
        "cache",
        "measured\npeaks",
    )
    for device in capabilities.devices:
        more = [device_class(device), str(pending.get(device.id, 0))] if is_fleet else []
        table.add_row(
            device.id,
            *more,
            f"{device.name} ({device.driver_version})",
            str(device.compute_units),
            f"{device.shared_bytes >> 10} KiB",
            f"{device.cache_bytes >> 20} MiB",
            _peaks(device.peaks),
        )
    console.print(table)
    for kind in capabilities.availability:
        if not kind.available:
            reason = kind.reason if verbose else _cut(kind.reason)
            line = f"{kind.kind}: not available: {reason}"
            console.print(line, style="yellow", soft_wrap=True, highlight=False)
    for profiler in capabilities.profilers:
        if profiler.available:
            console.print(f"profiles: {profiler.kind}")
        else:
            reason = profiler.reason if verbose else _cut(profiler.reason)
            line = f"profiles without counters: {profiler.kind}: {reason}"
            console.print(line, soft_wrap=True, highlight=False)
    if not verbose:
        _show_whether_isolated(console, capabilities)
        return
    _show_isolation(console, capabilities)
    console.print(", ".join(capabilities.versions), style="dim")


def _cut(reason: str) -> str:
    line = reason.partition("\n")[0]
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}… (--verbose: all)"


def _show_whether_isolated(console: PrintableConsole, capabilities: Capabilities) -> None:
    """Print in one line whether candidates are isolated, and by which mechanisms."""
    mechanisms = ", ".join(capabilities.isolation.mechanisms)
    if not mechanisms or not all(p.is_sufficient for p in capabilities.processes):
        line = "isolation: candidates are NOT isolated (--verbose: details for each process)"
        console.print(line, style="bold red")
        return
    # A builder has every lock that the host offers; other kinds leave some out by their nature.
    builders = [p for p in capabilities.processes if p.process.endswith(" builder")]
    missing = dict.fromkeys(_cut(m) for p in builders for m in p.missing)
    line = f"isolation: candidates are isolated, by {mechanisms}"
    if missing:
        line += f"; not in force: {'; '.join(missing)}"
    console.print(line, soft_wrap=True, highlight=False)


def _show_isolation(console: PrintableConsole, capabilities: Capabilities) -> None:
    """Print the sandbox mechanisms of each kind of process, and which are missing and why."""
    common = ", ".join(capabilities.isolation.mechanisms)
    if not common:
        console.print("isolation: no mechanism applies to every process", style="bold red")
    else:
        console.print(f"isolation of every process that handles candidates: {common}")
    for process in capabilities.processes:
        console.print(f"{process.process}: {', '.join(process.mechanisms) or 'none'}")
        limits = ", ".join(_limit(limit.name, limit.value) for limit in process.limits)
        for line in (*process.rules, *([f"limits: {limits}"] if limits else [])):
            console.print(f"  {line}", style="dim")
        for missing in process.missing:
            console.print(f"  without {missing}", style="yellow")


def _limit(name: str, value: int) -> str:
    subject, _, unit = name.rpartition("_")
    if unit == "bytes":
        return f"{subject} {value >> 20} MiB"
    return f"{subject} {value} s" if unit == "seconds" else f"{name.replace('_', ' ')} {value}"


def _peaks(peaks: Peaks | None) -> str:
    if peaks is None:
        return "not measured yet"
    return (
        f"{peaks.bandwidth_bytes_per_second / 1e9:.1f} GB/s, "
        f"{peaks.flops_per_second / 1e9:.0f} GFLOP/s, launch {peaks.launch_ns / 1e3:.1f} µs"
        + "".join(
            f", {r.format} {r.flops_per_second / 1e12:.0f} TFLOP/s" for r in peaks.matrix_rates
        )
    )
