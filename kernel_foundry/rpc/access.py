"""Lets calls in that may come in, and notes each in the audit log: who, what, how it ended."""

import contextlib
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc

from kernel_foundry.caller import ANYBODY, Caller, set_caller
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.rpc.handler_wrap import code_name, wrapped
from kernel_foundry.rpc.interceptor import abort
from kernel_foundry.rpc.method_roles import needed_role
from kernel_foundry.rpc.quotas import set_token
from kernel_foundry.rpc.security import PRIORITY_KEY
from kernel_foundry.rpc.tokens import Token, TokenFile
from kernel_foundry.whole_file import writing

_log = logging.getLogger("kernel_foundry.audit")

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_BEARER: Final = "Bearer "
_LONGEST_ID: Final = 200
_OK: Final = "OK"
_CANCELLED: Final = "CANCELLED"


class AuditLog:
    """One JSON object a line for each call.

    Args:
        path: File that lines are added to; None: the service's log.

    Raises:
        InvalidArgumentError: the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._descriptor = -1
        if path is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with writing(f"the audit log {path}", field="audit_log"):
                self._descriptor = os.open(path, flags, 0o600)

    def note(self, *, who: str, peer: str, method: str, request_id: str, outcome: str) -> None:
        """Add a line.

        Args:
            who: Name and id of the caller's token; "" where none is known.
            peer: Address that the call came from, as gRPC writes it.
            method: Full name.
            request_id: Of the request; "" for none.
            outcome: Name of the call's status.
        """
        line = json.dumps(
            {
                "unix_s": round(time.time(), 3),
                "who": who,
                "peer": peer,
                "method": method,
                "request_id": request_id[:_LONGEST_ID],
                "outcome": outcome,
            }
        )
        if self._descriptor < 0:
            _log.info("%s", line)
        else:
            os.write(self._descriptor, f"{line}\n".encode())

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)


class AccessInterceptor(grpc.aio.ServerInterceptor):
    """Refuses calls before their request is read.

    Args:
        tokens: Whose tokens are let in; None: everybody is, by TLS or by where they are.
        audit: Where calls are noted.
    """

    def __init__(self, tokens: TokenFile | None, audit: AuditLog) -> None:
        self._tokens = tokens
        self._audit = audit

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["_Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        """Return the method's handler, or one that refuses."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        role = needed_role(method)
        if handler is None or role is None:
            return handler
        token: Token | None = None
        shown, tokens = _shown(handler_call_details), self._tokens
        if tokens is None:
            return self._noted(handler, method, token, ANYBODY, lambda: None)
        try:
            token = tokens.bearer(shown)
            token.check_role(role)
        except KernelFoundryError as error:
            return self._refusing(error, method, token)
        user = _user(token, handler_call_details)
        return self._noted(
            handler, method, token, user, lambda: tokens.bearer(shown).check_role(role)
        )

    def _noted(
        self,
        handler: "_Handler",
        method: str,
        token: Token | None,
        user: Caller,
        check: Callable[[], object],
    ) -> "_Handler":
        """The handler with a line in the audit log at each call's end.

        Args:
            handler: The method's.
            method: Its name.
            token: Who calls.
            user: The same for the service.
            check: Raises once the caller may call no longer: a stream may outlive a token.
        """

        def note(request: Any, peer: str, outcome: str) -> None:
            self._audit.note(
                who=_who(token),
                peer=peer,
                method=method,
                request_id=_request_id(request),
                outcome=outcome,
            )

        async def unary(request: Any, context: Any) -> Any:
            # At the end of a stream gRPC may have freed the call, and asking would crash.
            outcome, peer = _CANCELLED, context.peer()
            set_caller(user)
            set_token(token)
            try:
                answer = await answering(request, context)
                outcome = _OK
            except KernelFoundryError as error:
                outcome = error.code.name
                await abort(context, error, method)
            except Exception:
                outcome = code_name(context.code())
                raise
            finally:
                note(request, peer, outcome)
            return answer

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            outcome, peer = _CANCELLED, context.peer()
            set_caller(user)
            set_token(token)
            try:
                async with contextlib.aclosing(streaming(request, context)) as answers:
                    async for answer in answers:
                        check()
                        yield answer
                outcome = _OK
            except KernelFoundryError as error:
                outcome = error.code.name
                await abort(context, error, method)
            except Exception:
                outcome = code_name(context.code())
                raise
            finally:
                note(request, peer, outcome)

        answering: Any = handler.unary_unary
        streaming: Any = handler.unary_stream or handler.stream_stream
        return wrapped(handler, unary, stream)

    def _refusing(self, error: KernelFoundryError, method: str, token: Token | None) -> "_Handler":
        """A handler for any method that reads nothing, notes the call and answers with the error.

        As a stream of requests: of any other kind a request is received whole before the handler is
        asked, tens of megabytes of whom nobody knows.
        """

        async def refuse(_requests: Any, context: Any) -> AsyncIterator[Any]:
            self._audit.note(
                who=_who(token),
                peer=context.peer(),
                method=method,
                request_id="",
                outcome=error.code.name,
            )
            await abort(context, error, method)
            yield  # never reached: it makes this a stream

        return grpc.stream_stream_rpc_method_handler(refuse)


def _who(token: Token | None) -> str:
    return "" if token is None else f"{token.name} ({token.id})"


def _request_id(request: Any) -> str:
    """The id of a request, or of the one within it; "" for none."""
    for holder in (request, getattr(request, "request", None)):
        found = getattr(holder, "request_id", "")
        if isinstance(found, str) and found:
            return found
    return ""


def _shown(details: grpc.HandlerCallDetails) -> str:
    for key, value in details.invocation_metadata or ():
        if key == "authorization" and isinstance(value, str) and value.startswith(_BEARER):
            return value.removeprefix(_BEARER)
    return ""


def _user(token: Token, details: grpc.HandlerCallDetails) -> Caller:
    """Who calls, with the priority that the call asks for as far as its token allows it."""
    asked = 0
    for key, value in details.invocation_metadata or ():
        if key == PRIORITY_KEY and isinstance(value, str) and len(value) == 1 and value.isdecimal():
            asked = int(value)
    return Caller(
        name=token.name,
        is_admin=token.is_admin,
        priority=min(asked, token.most_priority),
        most_at_once=token.most_at_once,
    )
