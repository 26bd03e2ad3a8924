"""Has cases judged, a few at a time, and compares every verdict with the expected one.

Works with any `ports.Evaluator`. If we fail on one case, that is its result, and the others go on.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.unreadable_candidate import unreadable_candidate
from kernel_foundry.errors import BackendUnavailableError
from kernel_foundry.plan.candidate_text import ExtractionError, split
from kernel_foundry.ports import Evaluator
from kernel_foundry.sdk.selftest.case import Case, CaseResult, CaseState, Comparison, compare
from kernel_foundry.sdk.selftest.case_folder import twin_of

Listener = Callable[[CaseResult], None]

AT_ONCE: Final = 2
"""Cases in progress at once, as many as an evaluator judges at once on a device."""
_LIMITS: Final = EvaluationLimits(build_seconds=20.0, run_seconds=5.0, timing_seconds=0.3)
_GAIN_TRIES: Final = 3
"""Times are noisy, and a gain that is none does not come four times."""
_CASE_SECONDS: Final = 180.0
"""More than the limits of all stages together: whoever needs longer hangs. The task's admission
is not among them: an evaluator limits that itself."""
_ARCHITECTURE: Final = "sm_90"
"""What CUDA is built for where there is no GPU."""
_AT_BUILD: Final = (
    EvaluationOutcome.REJECTED,
    EvaluationOutcome.EXTRACTION_FAILED,
    EvaluationOutcome.PLAN_ERROR,
    EvaluationOutcome.COMPILE_ERROR,
)
"""Outcomes that a build without a device may end in."""


def _ignore(_result: CaseResult) -> None:
    """Listen to nothing."""


async def run_cases(
    evaluator: Evaluator,
    cases: Sequence[Case],
    devices: Mapping[Language, str],
    listener: Listener = _ignore,
) -> tuple[CaseResult, ...]:
    """Return the result of every case, in the order of `cases`.

    Args:
        evaluator: Judges them.
        cases: Twins among them.
        devices: Where each language runs; one that is not named has no device.
        listener: Told of each result as it comes.
    """
    return await _CaseRun(evaluator, cases, devices, listener).results()


class _CaseRun:
    """One pass over the cases."""

    def __init__(
        self,
        evaluator: Evaluator,
        cases: Sequence[Case],
        devices: Mapping[Language, str],
        listener: Listener,
    ) -> None:
        self._evaluator = evaluator
        self._cases = cases
        self._honest = [case for case in cases if case.is_honest]
        self._devices = devices
        self._listener = listener
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._admissions: dict[tuple[str, str], asyncio.Lock] = {}
        self._results: dict[str, CaseResult] = {}

    async def results(self) -> tuple[CaseResult, ...]:
        # Twins first: what they take is the yardstick of those whose gain is denied.
        for denied in (False, True):
            async with asyncio.TaskGroup() as group:
                for case in self._cases:
                    if case.expectation.gain_denied is denied:
                        group.create_task(self._run(case))
        return tuple(self._results[case.name] for case in self._cases)

    async def _run(self, case: Case) -> None:
        async with self._turns:
            result = await self._guarded(case)
        self._results[case.name] = result
        self._listener(result)

    async def _guarded(self, case: Case) -> CaseResult:
        try:
            has_device = case.language in self._devices
            if has_device:
                await self._admit(case)
            async with asyncio.timeout(_CASE_SECONDS):
                return await (self._judged(case) if has_device else self._built(case))
        # Whatever fails, a bug included, is this case's result: a self-test that ends at
        # the first would hide the others.
        except Exception as error:  # noqa: BLE001
            return _result(case, CaseState.ERROR, detail=f"{type(error).__name__}: {error}")

    async def _judged(self, case: Case) -> CaseResult:
        started_s = time.perf_counter()
        evaluation = await self._evaluate(case)
        seconds = time.perf_counter() - started_s
        twin = twin_of(case, self._honest)
        compared = None if twin is None else self._results[twin.name].evaluation
        held = compare(case, evaluation, compared)
        for _ in range(_GAIN_TRIES):
            if held.is_expected or not evaluation.passed or twin is None or compared is None:
                break
            evaluation = await self._evaluate(case)
            held = compare(case, evaluation, await self._evaluate(twin))
        return _decided(case, evaluation, held, seconds)

    async def _built(self, case: Case) -> CaseResult:
        """Build a case without its device, which decides some of them."""
        missing = f"there is no {case.language.value} device"
        may_decide = case.is_honest or any(o in _AT_BUILD for o in case.expectation.outcomes)
        if case.language is not Language.CUDA or not may_decide:
            return _result(case, CaseState.NOT_RUN, detail=missing)
        started_s = time.perf_counter()
        try:
            evaluation = await self._evaluate(case, build_for=_ARCHITECTURE)
        except BackendUnavailableError as error:
            return _result(case, CaseState.NOT_RUN, detail=f"{missing}, and {error}")
        seconds = time.perf_counter() - started_s
        if evaluation.outcome is EvaluationOutcome.BUILT:
            detail = f"{missing}, and its build alone does not decide it"
            return _result(case, CaseState.NOT_RUN, detail=detail, seconds=seconds)
        return _decided(case, evaluation, compare(case, evaluation, None), seconds)

    async def _admit(self, case: Case) -> None:
        """Have the case's task admitted before its verdict is timed; once for all of a task."""
        device = self._devices[case.language]
        lock = self._admissions.setdefault((case.task.digest, device), asyncio.Lock())
        async with lock:
            await self._evaluator.admit(case.task, device)

    async def _evaluate(self, case: Case, *, build_for: str = "") -> Evaluation:
        device = "" if build_for else self._devices[case.language]
        try:
            source = split(case.text)
        except ExtractionError as error:
            digest = content_digest(case.text)
            return unreadable_candidate(digest, error.message, case.task, device)
        return await self._evaluator.evaluate(
            EvaluationRequest(
                task=case.task,
                device=device,
                source=source,
                limits=_LIMITS,
                build_only=bool(build_for),
                architecture=build_for,
            )
        )


def _decided(case: Case, evaluation: Evaluation, held: Comparison, seconds: float) -> CaseResult:
    state = CaseState.AS_EXPECTED if held.is_expected else CaseState.UNEXPECTED
    return _result(case, state, detail=held.detail, evaluation=evaluation, seconds=seconds)


def _result(
    case: Case,
    state: CaseState,
    *,
    detail: str = "",
    evaluation: Evaluation | None = None,
    seconds: float = 0.0,
) -> CaseResult:
    return CaseResult(case=case, state=state, evaluation=evaluation, detail=detail, seconds=seconds)
