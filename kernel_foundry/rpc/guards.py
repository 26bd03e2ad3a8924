"""The interceptors of every call to our services: observation, access with quotas, and statuses.

The same for a server of ours and for methods whose calls somebody else's server carries.
"""

import logging

import grpc

from kernel_foundry.rpc.access import AccessInterceptor, AuditLog
from kernel_foundry.rpc.call_count import CallCount
from kernel_foundry.rpc.interceptor import ErrorInterceptor
from kernel_foundry.rpc.metrics import Metrics
from kernel_foundry.rpc.observation import ObservationInterceptor
from kernel_foundry.rpc.quotas import QuotaInterceptor, Quotas
from kernel_foundry.rpc.security import ServerSecurity
from kernel_foundry.rpc.tokens import TokenFile
from kernel_foundry.rpc.usage_file import UsageFile
from kernel_foundry.tracing import is_tracing

_log = logging.getLogger(__name__)


class Guards:
    """The interceptors of one server, and the files that they hold open.

    Args:
        security: Who may call.
        asks_for_tokens: Whether the tokens of `security` are asked for; not by a UNIX socket.
        is_encrypted: Whether clients come by TLS; their calls are noted in the audit log.
        keeps_quotas: Whether quotas of users are enforced here.
        metrics: Counts calls; None: nobody does.

    Raises:
        InvalidArgumentError: a file cannot be read or written.
    """

    def __init__(
        self,
        security: ServerSecurity,
        *,
        asks_for_tokens: bool,
        is_encrypted: bool = False,
        keeps_quotas: bool = True,
        metrics: Metrics | None = None,
    ) -> None:
        tokens = TokenFile(security.tokens) if security.tokens and asks_for_tokens else None
        if tokens is not None:
            tokens.tokens()  # a file that is none is said now, not to the first caller
            if security.tokens and not security.tokens.exists():
                _log.warning(
                    "there is no %s: nobody is let in until"
                    " `kfoundry token create NAME --tokens %s` makes it",
                    security.tokens,
                    security.tokens,
                )
        self._audit = AuditLog(security.audit_log)
        self._quotas: Quotas | None = None
        if security.tokens and tokens and keeps_quotas:
            file = security.usage
            usage = UsageFile(file) if file else UsageFile.beside(security.tokens)
            self._quotas = Quotas(usage)
        audits = tokens is not None or is_encrypted or security.audit_log is not None
        access = (AccessInterceptor(tokens, self._audit),) if audits else ()
        quotas = (QuotaInterceptor(self._quotas),) if self._quotas else ()
        self._calls = CallCount()
        is_observed = metrics is not None or is_tracing()
        observers = (ObservationInterceptor(metrics),) if is_observed else ()
        self.interceptors: tuple[grpc.aio.ServerInterceptor, ...] = (
            self._calls,
            *observers,
            *access,
            ErrorInterceptor(),
            *quotas,
        )
        """In the order in which a call passes them."""

    @property
    def in_flight(self) -> int:
        """Calls that are being answered or wait for a device."""
        return self._calls.in_flight

    def close(self) -> None:
        """Close the files."""
        if self._quotas is not None:
            self._quotas.close()
        self._audit.close()
