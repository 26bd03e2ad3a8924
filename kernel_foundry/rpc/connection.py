"""A connection to one service: deadlines, retries and typed errors.

The services' methods are in `evaluator.py`, `archive.py`, `generator.py` and `experience.py`.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import grpc

from kernel_foundry.errors import (
    DeadlineExceededError,
    KernelFoundryError,
    MalformedAnswerError,
    ServiceUnavailableError,
)
from kernel_foundry.rpc.address import check_address
from kernel_foundry.rpc.bounded_reader import MalformedMessage, answer_reader
from kernel_foundry.rpc.limits import CHANNEL_OPTIONS
from kernel_foundry.rpc.security import ClientSecurity, is_unix
from kernel_foundry.rpc.server_version import difference, told_version
from kernel_foundry.rpc.status import from_rpc_error
from kernel_foundry.rpc.tls_probe import PortTls, port_tls
from kernel_foundry.tracing import trace_headers
from kernel_foundry.wire.message import read_field

_log = logging.getLogger(__name__)

Request = TypeVar("Request")
Response = TypeVar("Response")
T = TypeVar("T")
_Method = grpc.aio.UnaryUnaryMultiCallable[Request, Response]
_StreamMethod = grpc.aio.UnaryStreamMultiCallable[Request, Response]

CLIENT_OPTIONS = (
    *CHANNEL_OPTIONS,
    ("grpc.enable_http_proxy", 0),
    # A restarted service is found again at once, not after gRPC's default of up to 120 s.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a call that may be repeated is tried while a service is away or busy."""

    attempts: int = 6
    """Tries in all; six of them wait about 3 s for a service that restarts."""
    first_delay_s: float = 0.1
    """Doubled after each try, and scattered by up to a quarter so that callers spread out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """How the calls of one client are made."""

    quick_deadline_s: float = 30.0
    """Deadline of calls that only look something up or record it."""
    work_deadline_s: float = 900.0
    """Deadline of calls that build, measure or ask a model."""
    retry: RetryPolicy = RetryPolicy()


DEFAULT_OPTIONS = CallOptions()

APPLICATION_KEY = "application"
"""Metadata by which Ray Serve's ingress finds an application."""


_TLS_THERE = "this port wants TLS: set KERNEL_FOUNDRY_TLS_CA to the authority of its certificate"
_NO_TLS_THERE = (
    "this port has no TLS: unset KERNEL_FOUNDRY_TLS_CA, or give the service --tls-cert and"
    " --tls-key"
)
_CERTIFICATE_WANTED = (
    "this port may ask for a client certificate: set KERNEL_FOUNDRY_TLS_CLIENT_CERT and"
    " KERNEL_FOUNDRY_TLS_CLIENT_KEY"
)


class _BoundedChannel:
    """The channel of generated stubs; answers are read within limits."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    def unary_unary(
        self, method: str, *, response_deserializer: Callable[[bytes], Any], **rest: Any
    ) -> Any:
        """Return a method with one answer."""
        read = answer_reader(response_deserializer, method)
        return self._channel.unary_unary(method, response_deserializer=read, **rest)

    def unary_stream(
        self, method: str, *, response_deserializer: Callable[[bytes], Any], **rest: Any
    ) -> Any:
        """Return a method whose answers stream."""
        read = answer_reader(response_deserializer, method)
        return self._channel.unary_stream(method, response_deserializer=read, **rest)


class Connection:
    """A channel to the service at `target`; belongs to the event loop it is made in.

    Args:
        target: `unix:/path`, `host:port`, or `host:port/application` of an ingress that has
            several.
        options: Deadlines and retries.

    Raises:
        InvalidArgumentError: it is no such target, or what the environment says of TLS, tokens and
            priority cannot be used for it.
    """

    def __init__(self, target: str, options: CallOptions) -> None:
        security = ClientSecurity.from_environment()
        address, application = split_target(target)
        check_address(address, "target", first_port=1)
        self._address = address
        self._uses_tls = security.ca is not None
        self._shows_certificate = security.certificate is not None
        chosen = ((APPLICATION_KEY, application),) if application else ()
        self._metadata = (*security.metadata(address), *chosen)
        self._channel = security.channel(address, CLIENT_OPTIONS)
        self.unbounded = self._channel
        """For a method whose reader bounds its answers itself."""
        # Stubs name the type of a channel, and use no more of it than this one has.
        self.channel = cast("grpc.aio.Channel", _BoundedChannel(self._channel))
        self._target = target
        self._options = options
        self._knows_version = False

    async def quick(self, method: _Method[Request, Response], request: Request) -> Response:
        """Return the answer of a method that takes no work and may be repeated."""
        try:
            return await self._repeat(method, request, self._options.quick_deadline_s)
        except ServiceUnavailableError as error:
            raise await self._explained(error) from error.__cause__

    async def ask(
        self, kind: type[T], field: str, method: _Method[Request, Any], request: Request
    ) -> T:
        """Return what `field` of `quick`'s answer holds, which is a `kind`."""
        return read_field(kind, await self.quick(method, request), field)

    async def work(
        self, method: _Method[Request, Response], request: Request, *, repeatable: bool
    ) -> Response:
        """Return the answer of a method that takes long.

        Args:
            method: The stub's method.
            request: Its request.
            repeatable: Whether it may be tried again, because this request is idempotent.
        """
        call = self._repeat if repeatable else self._once
        try:
            return await call(method, request, self._options.work_deadline_s)
        except ServiceUnavailableError as error:
            raise await self._explained(error) from error.__cause__

    async def stream(
        self, method: _StreamMethod[Request, Response], request: Request, *, timeout_s: float | None
    ) -> AsyncGenerator[Response, None]:
        """Yield the answers of a method that streams; the call ends with the iteration.

        Never tried again by itself: what came already would come twice.

        Args:
            method: The stub's method.
            request: Its request.
            timeout_s: Deadline of the whole stream; None for one without end.
        """
        call = method(request, timeout=timeout_s, metadata=(*self._metadata, *trace_headers()))
        try:
            async for response in call:
                yield self._checked(response)
        except grpc.aio.AioRpcError as error:
            raise await self._explained(from_rpc_error(error, self._target)) from error
        finally:
            call.cancel()  # without effect once it has ended

    async def close(self) -> None:
        """Close the channel; calls in flight are cancelled."""
        await self._channel.close()

    async def _repeat(
        self, method: _Method[Request, Response], request: Request, deadline_s: float
    ) -> Response:
        clock = asyncio.get_running_loop().time
        end_s = clock() + deadline_s
        delay_s = self._options.retry.first_delay_s
        reason: KernelFoundryError | None = None
        for attempt in range(1, self._options.retry.attempts + 1):
            try:
                return await self._once(method, request, end_s - clock())
            except DeadlineExceededError as error:
                # Why the tries before failed says more than that this one was cut short.
                raise (reason or error) from error.__cause__
            except KernelFoundryError as error:
                is_last = attempt == self._options.retry.attempts or clock() + delay_s > end_s
                if not error.may_pass or is_last:
                    raise
                reason = error
            await asyncio.sleep(delay_s * random.uniform(0.75, 1.25))
            delay_s *= 2
        raise AssertionError("the last try returns or raises")

    async def _once(
        self, method: _Method[Request, Response], request: Request, timeout_s: float
    ) -> Response:
        call = method(request, timeout=timeout_s, metadata=(*self._metadata, *trace_headers()))
        try:
            response = await call
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error, self._target) from error
        if not self._knows_version:
            self._knows_version = True
            self._warn_of(told_version(await call.trailing_metadata()))
        return self._checked(response)

    def _warn_of(self, version: str) -> None:
        """Say once where the service is of another version."""
        fault = difference(version)
        if fault:
            _log.warning("%s: %s", self._target, fault)

    async def _explained(self, error: KernelFoundryError) -> KernelFoundryError:
        """The error of a call; with what to do where one side wants TLS and the other does not.

        gRPC says "Socket closed" then.
        """
        is_of_transport = isinstance(error, ServiceUnavailableError) and (
            error.metadata.get("target") == self._target  # otherwise a service said it
        )
        if not is_of_transport or is_unix(self._address):
            return error
        advice = self._tls_advice(await port_tls(self._address))
        if not advice:
            return error
        return ServiceUnavailableError(f"{error.message}; {advice}", **error.metadata)

    def _tls_advice(self, spoken: PortTls | None) -> str:
        """Return advice on TLS at a port; "" if nothing is known to be wrong."""
        if spoken is None:
            return ""
        if spoken is PortTls.NONE:
            return _NO_TLS_THERE if self._uses_tls else ""
        if not self._uses_tls:
            return _TLS_THERE
        is_unknown = spoken is PortTls.MUTUAL and not self._shows_certificate
        return _CERTIFICATE_WANTED if is_unknown else ""

    def _checked(self, response: Response) -> Response:
        if isinstance(response, MalformedMessage):
            raise MalformedAnswerError(
                f"{self._target} gave what is not an answer of this method:"
                f" {response.reason}; is it a service of this version?",
                target=self._target,
            )
        return response


def split_target(target: str) -> tuple[str, str]:
    """Return the address of a target, and its application, "" for none."""
    if is_unix(target):
        return target, ""
    address, _, application = target.partition("/")
    return address, application
