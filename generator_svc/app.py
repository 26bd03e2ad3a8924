"""Puts the generator service together."""

from pathlib import Path

from generator_svc.assembly import assemble
from generator_svc.experience_service import experience_service
from generator_svc.service import generator_service
from kernel_foundry.rpc import server
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.security import ServerSecurity


async def serve(
    *,
    listen: str,
    store_url: str,
    exchanges: Path,
    prompts: Path | None = None,
    grace_s: float = server.GRACE_S,
    security: ServerSecurity = server.NO_SECURITY,
    metrics: Metrics | None = None,
) -> None:
    """Serve the generator until SIGTERM or SIGINT.

    Args:
        listen: `unix:/path` or `host:port`.
        store_url: SQLAlchemy URL of the store of what is remembered and learnt.
        exchanges: Folder that keeps every exchange with a model.
        prompts: Folder of a user's own prompt templates.
        grace_s: How long calls in flight may take to finish at the end.
        security: Who may connect.
        metrics: Counts calls; None: nobody does.

    Raises:
        LlmConfigurationError: a template of `prompts` cannot be read.
        ServiceUnavailableError: the address cannot be bound.
        InvalidArgumentError: the address needs more security than is given.
    """
    parts = assemble(store_url=store_url, exchanges=exchanges, prompts=prompts)
    services = [generator_service(parts.generator), experience_service(parts.experience)]
    await server.serve(services, listen, grace_s=grace_s, security=security, metrics=metrics)
