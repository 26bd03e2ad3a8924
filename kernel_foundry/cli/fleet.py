"""`kfoundry fleet`: evaluators behind Ray Serve's gRPC ingress."""

import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.table import plain_table, whole
from kernel_foundry.sdk.ray_fleet import INGRESS_PORT, ApplicationState, RayFleet, read_applications

_ray_option = click.option(
    "--ray",
    "address",
    default="",
    envvar="KERNEL_FOUNDRY_RAY",
    metavar="ADDRESS",
    help="A cluster of Ray that runs: HOST:PORT, or auto for this machine's.",
)


@click.group()
def command() -> None:
    """Run evaluators as a fleet of Ray Serve, behind one address; needs the extra `ray`.

    \b
    kfoundry fleet up sycl
    kfoundry optimize my_op.py --evaluator 127.0.0.1:9000/sycl
    """  # noqa: D301  a backspace keeps click from joining the lines


@command.command("up")
@click.argument("kinds", nargs=-1, metavar="[KIND]...", type=click.Choice(["cuda", "sycl", "null"]))
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML with applications and their arguments, in place of KINDs; see docs/ray.md.",
)
@click.option("--replicas", default="1", show_default=True, metavar="N|MIN-MAX")
@click.option("--port", default=INGRESS_PORT, show_default=True, help="Of the ingress.")
@click.option("--tokens", default="", help="File of `kfoundry token` on each host.")
@click.option("--usage", default="", help="File of what users have used of quotas.")
@click.option("--audit-log", default="", help="File that gets a JSON line for each call.")
@click.option(
    "--insecure",
    is_flag=True,
    help="Let the ingress listen at all addresses of its hosts, without TLS.",
)
@click.option(
    "--unsafe-no-sandbox", is_flag=True, help="Run candidates even where nothing locks them in."
)
@_ray_option
@click.option(
    "--wait", is_flag=True, help="With --ray: stay until these are down; Ctrl-C ends them."
)
def up(
    kinds: tuple[str, ...],
    file: Path | None,
    replicas: str,
    port: int,
    tokens: str,
    usage: str,
    audit_log: str,
    insecure: bool,
    unsafe_no_sandbox: bool,
    address: str,
    wait: bool,
) -> int:
    """Deploy an application for each KIND of device, with a replica for each device.

    With --ray they are deployed on that cluster, and this returns. Without it a cluster of this
    machine is started, and ends with this command: by Ctrl-C, or by `kfoundry fleet down --ray
    auto`. Other machines reach it by TLS through `kfoundry serve gateway` on one of its hosts.

    \b
    kfoundry fleet up cuda --replicas 4 --tokens tokens.json
    kfoundry fleet up --file applications.yaml --ray auto
    """  # noqa: D301  a backspace keeps click from joining the lines
    if bool(kinds) == (file is not None):
        raise click.UsageError("give KINDs of devices, or --file")
    least, most = _range(replicas)
    shared: dict[str, Any] = {
        "tokens": tokens,
        "usage": usage,
        "audit_log": audit_log,
        "unsafe_no_sandbox": unsafe_no_sandbox,
    }
    given = {kind: {"device": kind, "min_replicas": least, "max_replicas": most} for kind in kinds}
    named = read_applications(file) if file else given
    applications = {name: {**shared, **arguments} for name, arguments in named.items()}
    with closing(RayFleet(address, is_open=insecure)) as fleet:
        port = fleet.up(applications, port)
        for name in applications:
            print_text(f"127.0.0.1:{port}/{name}")
        if wait or not address:
            # Ray has put a handler of its own in the place of ours.
            signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
            print_text("serving; Ctrl-C ends it", err=True)
            # A cluster that was joined may have applications of others.
            own = tuple(applications) if address else ()
            try:
                fleet.wait(own)
            except KeyboardInterrupt:
                there = {state.name for state in fleet.status()}
                if there.intersection(own or there):
                    fleet.down([name for name in own if name in there])
    return 0


@command.command("status")
@json_option
@_ray_option
def status(as_json: bool, address: str) -> int:
    """Show the applications of a cluster and their replicas.

    \b
    kfoundry fleet status
    """  # noqa: D301  a backspace keeps click from joining the lines
    with closing(RayFleet(address or "auto")) as fleet:
        states = fleet.status()
    if as_json:
        print_json({"applications": [_plain(state) for state in states]})
        return 0
    table = plain_table(whole("application"), "state", "replicas", "")
    for state in states:
        replicas = ", ".join(f"{count} {name.lower()}" for name, count in state.replicas.items())
        table.add_row(state.name, state.state.lower(), replicas, state.message)
    PrintableConsole().print(table if states else "no applications")
    return 0


@command.command("down")
@click.argument("applications", nargs=-1, metavar="[APPLICATION]...")
@_ray_option
def down(applications: tuple[str, ...], address: str) -> int:
    """Take APPLICATIONs (default: all) down, each once its calls in flight have ended.

    \b
    kfoundry fleet down
    kfoundry fleet down h200 --ray head:6379
    """  # noqa: D301  a backspace keeps click from joining the lines
    with closing(RayFleet(address or "auto")) as fleet:
        fleet.down(applications)
    return 0


def _range(text: str) -> tuple[int, int]:
    least, dash, most = text.partition("-")
    if not least.isdigit() or not (most.isdigit() or not dash):
        raise click.BadParameter(f"{text!r}: expected N or MIN-MAX", param_hint="--replicas")
    return int(least), int(most or least)


def _plain(state: ApplicationState) -> dict[str, Any]:
    return {
        "application": state.name,
        "state": state.state,
        "replicas": dict(state.replicas),
        "message": state.message,
    }
