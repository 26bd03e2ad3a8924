"""`python -m evaluator_svc`: the evaluator as a process of its own.

Every setting can also come from the environment, see `evaluator_svc.settings`.
"""

import dataclasses
import os

import click

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.service import evaluator_service
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.process import child_option, listen_option, run, service_options
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.server import GRACE_S, serve


@click.command()
@listen_option(50051)
@click.option(
    "--device",
    "device_kinds",
    multiple=True,
    help="Device kind to look for: cuda, sycl or null; repeat for several.",
)
@click.option("--threads", type=int, help="Threads of the CPU device; 0: all usable cores.")
@click.option(
    "--unsafe-no-sandbox", is_flag=True, help="Run candidates even where nothing locks them in."
)
@click.option(
    "--grace", default=GRACE_S, show_default=True, help="Seconds for calls in flight at the end."
)
@service_options
@child_option
def main(
    listen: str,
    device_kinds: tuple[str, ...],
    threads: int | None,
    unsafe_no_sandbox: bool,
    grace: float,
    security: ServerSecurity,
    metrics: Metrics | None,
) -> None:
    """Serve an evaluator until SIGTERM or SIGINT."""

    async def serving() -> None:
        settings = EvaluatorSettings.from_environment(os.environ)
        settings = dataclasses.replace(
            settings,
            device_kinds=device_kinds or settings.device_kinds,
            threads=settings.threads if threads is None else threads,
            unsafe_no_sandbox=unsafe_no_sandbox or settings.unsafe_no_sandbox,
        )
        services = [evaluator_service(LocalEvaluator(settings))]
        await serve(services, listen, grace_s=grace, security=security, metrics=metrics)

    run(serving(), "evaluator")


if __name__ == "__main__":
    main(prog_name="kfoundry serve evaluator")
