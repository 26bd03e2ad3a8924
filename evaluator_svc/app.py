"""Puts the evaluator service together."""

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.service import evaluator_service
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.rpc import server
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.security import ServerSecurity


async def serve(
    *,
    listen: str,
    settings: EvaluatorSettings,
    grace_s: float = server.GRACE_S,
    security: ServerSecurity = server.NO_SECURITY,
    metrics: Metrics | None = None,
) -> None:
    """Serve an evaluator until SIGTERM or SIGINT.

    Raises:
        IsolationUnavailableError: nothing locks candidates in here, and `settings` insist.
        ServiceUnavailableError: the address cannot be bound.
        InvalidArgumentError: the address needs more security than is given.
    """
    await server.serve(
        [evaluator_service(LocalEvaluator(settings))],
        listen,
        grace_s=grace_s,
        security=security,
        metrics=metrics,
    )
