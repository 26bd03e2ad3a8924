"""Puts the archive service together."""

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.rpc import server


async def serve(*, listen: str, store_url: str, grace_s: float = server.GRACE_S) -> None:
    """Serve the archive on the store at `store_url` until SIGTERM or SIGINT.

    Raises:
        StoreUnavailableError, CorruptArchiveError: the store cannot be used.
        ServiceUnavailableError: the address cannot be bound.
    """
    await server.serve([archive_service(LocalArchive(store_url))], listen, grace_s=grace_s)
