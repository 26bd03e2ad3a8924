"""`kfoundry health`: check whether a service is ready, for scripts and probes."""

import asyncio

import click

from kernel_foundry.cli.output import print_text
from kernel_foundry.rpc.readiness import check_health
from kernel_foundry.rpc.security import ClientSecurity


@click.command()
@click.argument("target", metavar="TARGET")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=5.0, show_default=True)
@click.option(
    "--tls-name",
    default="",
    help="Name in the service's certificate.  [default: the host of TARGET]",
)
def command(target: str, timeout: float, tls_name: str) -> int:
    """Ask the service at TARGET, HOST:PORT or unix:/PATH, whether it is ready.

    Exit code 0 if everything that it serves is SERVING, else 1. TLS works as for all clients
    (KERNEL_FOUNDRY_TLS_CA; docs/access.md); no token is needed.

    \b
    kfoundry health localhost:50051
    KERNEL_FOUNDRY_TLS_CA=ca.pem kfoundry health localhost:50051 --tls-name gpuhost
    """  # noqa: D301  a backspace keeps click from joining the lines
    security = ClientSecurity.from_environment()
    health = asyncio.run(check_health(target, security, timeout_s=timeout, tls_name=tls_name))
    version = f", version {health.version}" if health.version else ""
    print_text(f"{target}: {health.state}{version}", err=not health.is_serving)
    return 0 if health.is_serving else 1
