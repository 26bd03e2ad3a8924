"""One evaluator elsewhere, which may be lost: it is waited for, and its losses are counted.

As in a fleet, a candidate with which it was lost twice is quarantined (`losses.py`).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.device import Capabilities
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.probe import Probe
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import ConfigurationResult, SweepRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import KernelFoundryError, ServiceUnavailableError
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.fleet.losses import Losses

_PATIENCE_S: Final = 60.0
"""For one that was lost to come back."""
_FRESH_S: Final = 1.0
"""One not heard from for so long is asked before a candidate is sent to it: if it is lost later,
the candidate was there."""
_TRIES: Final = 6
"""Of a call that may pass, such as one that meets a full queue."""
_FIRST_PAUSE_S: Final = 0.1


class LoneEvaluator:
    """Implements `kernel_foundry.ports.Evaluator`; made and used in one event loop.

    Args:
        name: What findings call it.
        evaluator: Reaches it, and repeats calls itself.
        once: Reaches it, and repeats nothing: candidates are sent by this one.
        patience_s: How long it is waited for after a loss.
    """

    def __init__(
        self, name: str, evaluator: Evaluator, once: Evaluator, patience_s: float = _PATIENCE_S
    ) -> None:
        self._name = name
        self._evaluator = evaluator
        self._once = once
        self._patience_s = patience_s
        self._losses = Losses()
        self._heard_s = float("-inf")

    async def capabilities(self) -> Capabilities:
        """Return what it can do."""
        return await self._evaluator.capabilities()

    async def admit(self, task: Task, device: str = "") -> Admission:
        """Admit a task there."""
        return await self._evaluator.admit(task, device)

    async def probe(self, device: str = "") -> tuple[Probe, ...]:
        """Try what must work on its host."""
        return await self._evaluator.probe(device)

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge one candidate; again after a loss only where the request has an id."""
        return await self._judged(
            request, lambda: self._once.evaluate(request), is_repeatable=bool(request.request_id)
        )

    async def evaluate_foreign(self, request: ForeignRequest) -> Evaluation:
        """Judge a foreign kernel, once."""
        return await self._judged(
            request, lambda: self._once.evaluate_foreign(request), is_repeatable=False
        )

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        """Try every configuration; a loss ends it."""
        candidate = request.source.digest
        if not self._losses.is_quarantined(candidate):
            await self._reach(patience_s=0.0)
            try:
                async with aclosing(self._once.sweep(request)) as results:
                    async for result in results:
                        self._hear()
                        yield result
            except ServiceUnavailableError:
                self._lose(candidate)
                if not self._losses.is_quarantined(candidate):
                    raise
            else:
                return
        yield self._losses.swept(candidate)

    async def close(self) -> None:
        """Close the connections; the evaluator goes on."""
        await self._once.close()
        await self._evaluator.close()

    async def _judged(
        self,
        request: EvaluationRequest | ForeignRequest,
        judge: Callable[[], Awaitable[Evaluation]],
        *,
        is_repeatable: bool,
    ) -> Evaluation:
        candidate = request.source.digest
        tries, pause_s, patience_s = 1, _FIRST_PAUSE_S, 0.0
        while not self._losses.is_quarantined(candidate):
            await self._reach(patience_s)
            try:
                evaluation = await judge()
            except ServiceUnavailableError:
                self._lose(candidate)
                if not is_repeatable and not self._losses.is_quarantined(candidate):
                    raise
                patience_s = self._patience_s
            except KernelFoundryError as error:
                if not error.may_pass or not is_repeatable or tries == _TRIES:
                    raise
                await asyncio.sleep(pause_s)
                tries, pause_s = tries + 1, 2 * pause_s
            else:
                self._hear()
                return evaluation
        return self._losses.verdict(request)

    async def _reach(self, patience_s: float) -> None:
        """Return once it answers; one that was heard from a moment ago is not asked."""
        clock = asyncio.get_running_loop().time
        end_s = clock() + patience_s
        while clock() - self._heard_s > _FRESH_S:
            try:
                await self._evaluator.capabilities()
                self._hear()
            except KernelFoundryError as error:
                if not error.may_pass or clock() >= end_s:
                    raise
                await asyncio.sleep(_FIRST_PAUSE_S)

    def _hear(self) -> None:
        self._heard_s = asyncio.get_running_loop().time()

    def _lose(self, candidate: str) -> None:
        self._losses.note(candidate, self._name)
        self._heard_s = float("-inf")
