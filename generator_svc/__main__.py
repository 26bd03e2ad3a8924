"""`python -m generator_svc`: the generator as a process of its own."""

from pathlib import Path

import click

from generator_svc.assembly import assemble
from generator_svc.experience_service import experience_service
from generator_svc.service import generator_service
from kernel_foundry import paths
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.process import child_option, listen_option, run, service_options
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import GRACE_S, serve


@click.command()
@listen_option(50053)
@click.option(
    "--store",
    "store_url",
    default=paths.generator_store_url,
    show_default="generator.db in the data folder",
    help="SQLAlchemy URL of what is remembered and learnt: sqlite:////path or postgresql://...",
)
@click.option(
    "--exchanges",
    type=click.Path(file_okay=False, path_type=Path),
    default=paths.exchanges_dir,
    show_default="exchanges in the data folder",
    help="Folder that keeps every exchange with a model.",
)
@click.option(
    "--prompts",
    type=click.Path(file_okay=False, path_type=Path),
    default=paths.prompts_dir,
    show_default="none",
    help="Folder of your own prompt templates, each in place of the one of its name.",
)
@click.option(
    "--grace", default=GRACE_S, show_default=True, help="Seconds for calls in flight at the end."
)
@service_options
@child_option
def main(
    listen: str,
    store_url: str,
    exchanges: Path,
    prompts: Path | None,
    grace: float,
    security: ServerSecurity,
    metrics: Metrics | None,
) -> None:
    """Serve the generator until SIGTERM or SIGINT."""

    async def serving() -> None:
        parts = assemble(store_url=store_url, exchanges=exchanges, prompts=prompts)
        services = [generator_service(parts.generator), experience_service(parts.experience)]
        await serve(services, listen, grace_s=grace, security=security, metrics=metrics)

    run(serving(), "generator")


if __name__ == "__main__":
    main(prog_name="kfoundry serve generator")
