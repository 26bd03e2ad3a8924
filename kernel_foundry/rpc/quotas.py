"""Holds users to what their tokens allow of a service: evaluations, and USD of models.

A token has the quotas; what was used is counted by user, in a file beside the tokens that all
services on a host share. A call beyond a quota is refused. How many calls a user has on devices at
once is the evaluator's business.
"""

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import grpc

from kernel_foundry.errors import KernelFoundryError, QuotaExceededError
from kernel_foundry.rpc.handler_wrap import is_ours, wrapped
from kernel_foundry.rpc.tokens import Token
from kernel_foundry.rpc.usage_file import UsageFile

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

CONFIGURATIONS_PER_EVALUATION: Final = 8
"""Configurations of a sweep that count as one evaluation, as in runs."""

_JUDGING: Final = frozenset({"EvaluateKernel", "EvaluateForeign", "SweepKernel"})
_PROPOSING: Final = "ProposeCandidate"
_ADMITTING: Final = "AdmitTask"
"""Takes its time and ends in a call that judges: a quota that is used up is said before."""
_REMEMBERED: Final = 4096
"""Calls that may be repeated without counting again."""


class Quotas:
    """Holds users to the quotas of their tokens; belongs to one event loop."""

    def __init__(self, usage: UsageFile) -> None:
        self._usage = usage
        self._counted: OrderedDict[str, int] = OrderedDict()
        """By call that may be repeated: how many of its answers are paid for."""

    @contextlib.contextmanager
    def call(self, token: Token, method: str, request: Any) -> Iterator["QuotaCall"]:
        """Hold a call to its user's quotas; yield what takes its answers.

        An evaluation that ends as an error is not counted, and one whose client leaves is.

        Args:
            token: The caller's.
            method: Name without its service.
            request: The message; one with an id counts once, however often it is sent.

        Raises:
            QuotaExceededError: a quota is used up; also from the block.
            StoreUnavailableError: what was used cannot be read.
        """
        is_counted = method in _JUDGING and token.most_evaluations is not None
        key = _key(token, request) if is_counted else ""
        counted = is_counted and self.count(token, key, 1)
        if method == _PROPOSING:
            self._check_usd(token)
        if method == _ADMITTING:
            self._check_evaluations(token)
        call = QuotaCall(self, token, method, key)
        try:
            yield call
        except Exception:
            if counted and not call.answers:
                self._usage.take_back(token.name)
                self._counted.pop(key, None)
            raise

    def close(self) -> None:
        """Close the file."""
        self._usage.close()

    def count(self, token: Token, key: str, answers: int) -> bool:
        """Count an evaluation, unless it is a repeated one; return whether it was counted now.

        Args:
            token: The caller's.
            key: Of the call; "" for one that cannot be repeated.
            answers: Which answer of the call it is due for, from 1.

        Raises:
            QuotaExceededError: the user has no more.
        """
        most = token.most_evaluations
        if most is None or answers <= self._counted.get(key, 0):
            return False
        if not self._usage.add_evaluation(token.name, most):
            raise _exceeded(token, "evaluations", most)
        if key:
            self._counted[key] = answers
            while len(self._counted) > _REMEMBERED:
                self._counted.popitem(last=False)
        return True

    def charge(self, token: Token, usd: float) -> None:
        """Count what models cost."""
        if token.most_usd is not None and usd > 0:
            self._usage.add_usd(token.name, usd)

    def _check_evaluations(self, token: Token) -> None:
        most = token.most_evaluations
        if most is not None and self._usage.of(token.name).evaluations >= most:
            raise _exceeded(token, "evaluations", most)

    def _check_usd(self, token: Token) -> None:
        most = token.most_usd
        if most is not None and self._usage.of(token.name).usd >= most:
            raise _exceeded(token, "USD of models", most)


class QuotaCall:
    """One call that its user may make.

    Args:
        quotas: Counts.
        token: The caller's.
        method: Name without its service.
        key: By which a repeated call is known; "" for one that cannot be repeated.
    """

    def __init__(self, quotas: Quotas, token: Token, method: str, key: str) -> None:
        self._quotas = quotas
        self._token = token
        self._method = method
        self._key = key
        self.answers = 0
        """How many came."""

    def answered(self, answer: Any) -> None:
        """Count what an answer cost; of a stream each one.

        Raises:
            QuotaExceededError: a sweep goes beyond its user's evaluations.
        """
        self.answers += 1
        if self._method == _PROPOSING:
            self._quotas.charge(self._token, sum(u.cost_usd for u in answer.proposal.usage))
            return
        is_due = self.answers > 1 and self.answers % CONFIGURATIONS_PER_EVALUATION == 1
        if self._method == "SweepKernel" and is_due:
            self._quotas.count(self._token, self._key, self.answers)


class QuotaInterceptor(grpc.aio.ServerInterceptor):
    """Holds calls to the quotas of their tokens, which `set_token` says.

    It stands below the interceptor that answers with errors: what a failed call counted is taken
    back before its caller hears of the failure.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["_Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        """Return the method's handler within quotas."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        return self._within(handler, method) if handler and is_ours(method) else handler

    def _within(self, handler: "_Handler", path: str) -> "_Handler":
        method = path.rpartition("/")[2]

        async def unary(request: Any, context: Any) -> Any:
            token = _token.get()
            if token is None:
                return await answering(request, context)
            with self._quotas.call(token, method, request) as call:
                answer = await answering(request, context)
                call.answered(answer)
            return answer

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            token = _token.get()
            with contextlib.ExitStack() as held:
                call = token and held.enter_context(self._quotas.call(token, method, request))
                async with contextlib.aclosing(streaming(request, context)) as answers:
                    async for answer in answers:
                        if call:
                            call.answered(answer)
                        yield answer

        answering: Any = handler.unary_unary
        streaming: Any = handler.unary_stream or handler.stream_stream
        return wrapped(handler, unary, stream)


_token: ContextVar[Token | None] = ContextVar("token", default=None)


def set_token(token: Token | None) -> None:
    """Say whose token lets in the call that this task answers from here on; None: nobody's."""
    _token.set(token)


def _exceeded(token: Token, what: str, most: float) -> KernelFoundryError:
    return QuotaExceededError(
        f"the quota of {token.name} is used up: {most:g} {what}; whoever runs the service may"
        " give a token with more, or begin anew with `kfoundry token reset`",
        user=token.name,
        quota=what,
        most=f"{most:g}",
    )


def _key(token: Token, request: Any) -> str:
    """Return the key of a request with an id; "" without one."""
    inner = getattr(request, "request", None)
    if not getattr(inner, "request_id", ""):
        return ""
    content: bytes = request.SerializeToString(deterministic=True)
    return f"{token.name} {hashlib.sha256(content).hexdigest()}"
