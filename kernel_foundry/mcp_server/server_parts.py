"""What the tools of one server share."""

from dataclasses import dataclass, field

from kernel_foundry.mcp_server.allowance import Allowances
from kernel_foundry.mcp_server.background_run import BackgroundRun
from kernel_foundry.mcp_server.confined_paths import ConfinedPaths
from kernel_foundry.mcp_server.worker import Worker
from kernel_foundry.sdk.services import Targets


@dataclass(slots=True, kw_only=True)
class ServerParts:
    """Its folder, its services and what callers may spend."""

    paths: ConfinedPaths
    targets: Targets
    allowances: Allowances
    worker: Worker
    runs: list[BackgroundRun] = field(default_factory=list)
    """Those that were started here, the newest last."""

    async def close(self) -> None:
        """End the run that goes on, and the services."""
        for run in self.runs:
            await run.cancel()
        await self.worker.close()
