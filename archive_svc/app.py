"""Puts the archive service together."""

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.rpc import server
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.security import ServerSecurity


async def serve(
    *,
    listen: str,
    store_url: str,
    grace_s: float = server.GRACE_S,
    security: ServerSecurity = server.NO_SECURITY,
    metrics: Metrics | None = None,
) -> None:
    """Serve the archive on the store at `store_url` until SIGTERM or SIGINT.

    Raises:
        StoreUnavailableError, CorruptArchiveError: the store cannot be used.
        ServiceUnavailableError: the address cannot be bound.
        InvalidArgumentError: the address needs more security than is given.
    """
    await server.serve(
        [archive_service(LocalArchive(store_url))],
        listen,
        grace_s=grace_s,
        security=security,
        metrics=metrics,
    )
