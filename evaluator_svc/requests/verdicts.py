"""Verdicts in progress and just given: for whoever sends the same request again."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Final

from evaluator_svc.requests.listeners import Listeners
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.request import EvaluationRequest

_REMEMBERED: Final = 1024
"""Verdicts kept for calls that are repeated."""


class Verdicts:
    """Has each request with an id judged once.

    Args:
        retry_seconds: How long one is judged that nobody waits for.
    """

    def __init__(self, retry_seconds: float) -> None:
        self._retry_seconds = retry_seconds
        self._calls: OrderedDict[str, _Call] = OrderedDict()
        """By digest of the whole request: two clients may choose the same id."""

    async def verdict(
        self, request: EvaluationRequest, judge: Callable[[], Coroutine[Any, Any, Evaluation]]
    ) -> Evaluation:
        """Return the verdict on a request with an id, which `judge` gives unless it is known."""
        key = content_digest(to_json(request))
        call = self._calls.get(key)
        if call is None or call.has_failed:
            call = _Call(
                asyncio.ensure_future(judge()),
                self._retry_seconds,
                forget=lambda: self._forget(key),
            )
            self._calls[key] = call
            while len(self._calls) > _REMEMBERED:
                self._calls.popitem(last=False)
        with call.listeners.one_more():
            return await asyncio.shield(call.task)

    def stop_unheard(self) -> None:
        """Stop at once what nobody waits for."""
        for call in tuple(self._calls.values()):
            call.listeners.stop_if_none()

    def _forget(self, key: str) -> None:
        self._calls.pop(key, None)


class _Call:
    """One verdict; made in the event loop."""

    def __init__(
        self, task: "asyncio.Task[Evaluation]", seconds: float, forget: Callable[[], None]
    ) -> None:
        self.task = task
        self.listeners = Listeners(task, seconds, forget)

    @property
    def has_failed(self) -> bool:
        """True when it ended without a verdict."""
        if not self.task.done():
            return False
        return self.task.cancelled() or self.task.exception() is not None
