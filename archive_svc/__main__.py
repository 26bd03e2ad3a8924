"""`python -m archive_svc`: the archive as a process of its own."""

import click

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry import paths
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.process import child_option, listen_option, run, service_options
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import GRACE_S, serve


@click.command()
@listen_option(50052)
@click.option(
    "--store", default=paths.store_url, show_default="runs.db in the data folder", help="URL."
)
@click.option(
    "--grace", default=GRACE_S, show_default=True, help="Seconds for calls in flight at the end."
)
@service_options
@child_option
def main(
    listen: str, store: str, grace: float, security: ServerSecurity, metrics: Metrics | None
) -> None:
    """Serve the archive until SIGTERM or SIGINT."""

    async def serving() -> None:
        services = [archive_service(LocalArchive(store))]
        await serve(services, listen, grace_s=grace, security=security, metrics=metrics)

    run(serving(), "archive")


if __name__ == "__main__":
    main(prog_name="kfoundry serve archive")
