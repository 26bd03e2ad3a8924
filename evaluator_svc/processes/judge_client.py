"""The judge's methods as the supervisor calls them: one question at a time, with deadlines.

`evaluator_svc.judge` does the work in its own process.
"""

import logging
import threading
from typing import Any, Final

from evaluator_svc.messages.comparison import RangeVerdict, RunComparison
from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.foreign import CallForm, CallFormRequest
from evaluator_svc.messages.judge import (
    AdmitRequest,
    BaselinesReply,
    BaselinesRequest,
    ChangeReply,
    ChangeRequest,
    ComparisonProbeReply,
    DecoyVerdict,
    DescribeReply,
    DescribeRequest,
    DrawRequest,
    JudgeConfigure,
    JudgeFacts,
    KeptClaim,
    KeptVerdict,
    LoadSeedRequest,
    MemoryHeld,
    MemoryRequest,
    PoisonRequest,
    PrecisionReply,
    PrecisionRequest,
    ProbeComparisonRequest,
    RangesReply,
    ReleaseRequest,
    TaskBaselinesRequest,
    VerifyChangedRequest,
    VerifyDecoyRequest,
    VerifyKeptRequest,
    VerifyRangesRequest,
    VerifyRequest,
)
from evaluator_svc.messages.locked import DoneReply, OwnFailure
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from evaluator_svc.processes.channel import ChannelError, ChannelTimeoutError
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import Admission, Distribution, ValueRange
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline
from kernel_foundry.domain.task import Task, Tolerance
from kernel_foundry.errors import DeadlineExceededError, ProcessLostError

_LOG: Final = logging.getLogger(__name__)

_START_SECONDS: Final = 120.0
"""Importing torch on a cold disk."""
_END_SECONDS: Final = 1.0
"""From the channel's end to the process's own."""


class JudgeClient:
    """The one judge of a device.

    Args:
        process: As started.
        device: The device it judges on.
        threads: Threads torch gets.
        baselines: What an admission times beside eager.
        baseline_seconds: Longest measurement of one baseline.
        answer_seconds: Deadline of everything but admission.
        admission_seconds: Deadline of admission.
    """

    def __init__(
        self,
        process: ChildProcess,
        *,
        device: DeviceSpec,
        threads: int,
        baselines: tuple[str, ...],
        baseline_seconds: float,
        answer_seconds: float,
        admission_seconds: float,
    ) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._answer_seconds = answer_seconds
        self._admission_seconds = admission_seconds
        self._configure = JudgeConfigure(
            device=device,
            threads=threads,
            baselines=baselines,
            baseline_seconds=baseline_seconds,
        )
        self._facts: JudgeFacts | None = None

    @property
    def is_running(self) -> bool:
        """True until its process has ended."""
        return self._process.is_running

    def facts(self) -> JudgeFacts:
        """Return what the judge is; waits for its start."""
        with self._lock:
            return self._ready()

    def admit(self, task: Task, peaks: Peaks, memory_bytes: int = 0) -> Admission:
        """Admit `task` within `memory_bytes` (0: all); raises as `Evaluator.admit` does.

        Raises:
            DeviceMemoryError: it takes more memory than that.
        """
        request = AdmitRequest(task=task, peaks=peaks, memory_bytes=memory_bytes)
        answer, _ = self._ask(request, Admission, seconds=self._admission_seconds)
        return answer  # type: ignore[no-any-return]

    def describe(self, task: Task, *, shapes_alone: bool = False) -> DescribeReply:
        """Return what plans may name in `task`; needs no device.

        Args:
            task: The task.
            shapes_alone: Whether to fail where shapes follow from values.

        Raises:
            TaskInvalidError: the reference cannot be loaded or run.
        """
        request = DescribeRequest(task=task, shapes_alone=shapes_alone)
        return self._ask(request, DescribeReply)[0]  # type: ignore[no-any-return]

    def draw(
        self,
        task: Task,
        workload: str,
        tolerance: Tolerance,
        seeds: tuple[int, ...],
        distributions: tuple[Distribution, ...] = (),
        *,
        mixed: tuple[Distribution, ...] = (),
        is_lean: bool = False,
    ) -> tuple[Draw, tuple[int, ...]]:
        """Draw inputs; returns their description and the shared buffers' descriptors.

        Device memory has none; its handles are part of the description.

        Args:
            task: The task.
            workload: One of its workloads.
            tolerance: For the comparison.
            seeds: One for each shared buffer; of a lean draw they follow each other in one.
            distributions: What becomes of each seed's inputs; empty: they stay as drawn.
            mixed: What becomes of blocks of rows of the last seed's, in its distribution's place.
            is_lean: Whether to hold as little memory as can be; the draw says whether it does.
        """
        request = DrawRequest(
            task=task,
            workload=workload,
            tolerance=tolerance,
            seeds=seeds,
            distributions=distributions,
            mixed=mixed,
            is_lean=is_lean,
        )
        return self._ask(request, Draw)

    def call_form(self, draw: int) -> CallForm:
        """Return how the reference of a draw's workload is constructed and called."""
        return self._ask(CallFormRequest(draw=draw), CallForm)[0]  # type: ignore[no-any-return]

    def load_seed(self, draw: int, seed: int) -> None:
        """Put another seed's inputs into the buffer of a lean draw."""
        self._ask(LoadSeedRequest(draw=draw, seed=seed), DoneReply)

    def memory_held(self, draw: int) -> MemoryHeld:
        """Return what a draw takes of the device's memory."""
        return self._ask(MemoryRequest(draw=draw), MemoryHeld)[0]  # type: ignore[no-any-return]

    def verify(self, draw: int, slots: tuple[int, ...] = ()) -> RunComparison:
        """Compare output slots with the reference, all or some; of a lean draw the last run's."""
        request = VerifyRequest(draw=draw, slots=slots)
        return self._ask(request, RunComparison)[0]  # type: ignore[no-any-return]

    def verify_decoy(self, draw: int) -> tuple[str, ...]:
        """Return which outputs of a run without the candidate's kernels are right.

        They lie in the first slot of every seed. Right ones were not the kernels' doing.
        """
        answer, _ = self._ask(VerifyDecoyRequest(draw=draw), DecoyVerdict)
        return answer.right  # type: ignore[no-any-return]

    def audit_precision(self, draw: int) -> PrecisionReply:
        """Hold the outputs of the first seed against the reference in float64."""
        answer, _ = self._ask(PrecisionRequest(draw=draw), PrecisionReply)
        return answer  # type: ignore[no-any-return]

    def poison(self, draw: int) -> None:
        """Poison every output slot again."""
        self._ask(PoisonRequest(draw=draw), DoneReply)

    def verify_kept(
        self,
        draw: int,
        kept: tuple[KeptOutput, ...],
        claimed: KeptClaim | None = None,
        orders: tuple[tuple[int, ...], ...] = (),
    ) -> KeptVerdict:
        """Compare the kept outputs of calls with the reference.

        `claimed` tells which timed calls they have to be; these are audited, too. `orders` as
        `VerifyKeptRequest`.
        """
        request = VerifyKeptRequest(draw=draw, kept=kept, claimed=claimed, orders=orders)
        return self._ask(request, KeptVerdict)[0]  # type: ignore[no-any-return]

    def change_inputs(self, draw: int, *, with_parameters: bool, is_second: bool) -> ChangeReply:
        """Change a few elements of some seeds' inputs in place and poison their first slots."""
        request = ChangeRequest(draw=draw, with_parameters=with_parameters, is_second=is_second)
        return self._ask(request, ChangeReply)[0]  # type: ignore[no-any-return]

    def verify_changed(self, draw: int, seeds: tuple[int, ...]) -> RunComparison:
        """Tell whether outputs followed the inputs that were changed."""
        request = VerifyChangedRequest(draw=draw, seeds=seeds)
        return self._ask(request, RunComparison)[0]  # type: ignore[no-any-return]

    def verify_ranges(
        self, draw: int, ranges: tuple[ValueRange, ...], guests: tuple[int, ...] = ()
    ) -> tuple[RangeVerdict, ...]:
        """Compare the first output slots of a draw of unusual values.

        `guests`: compare what calls among the timed ones wrote on inputs of these seeds.
        """
        request = VerifyRangesRequest(draw=draw, ranges=ranges, guests=guests)
        return self._ask(request, RangesReply)[0].verdicts  # type: ignore[no-any-return]

    def time_baselines(
        self, draw: int, settings: MeasurementSettings, names: tuple[str, ...]
    ) -> tuple[Baseline, ...]:
        """Time baselines on a draw's inputs."""
        request = BaselinesRequest(draw=draw, settings=settings, names=names)
        return self._ask(request, BaselinesReply)[0].baselines  # type: ignore[no-any-return]

    def time_baselines_of(
        self, task: Task, workload: str, settings: MeasurementSettings, names: tuple[str, ...]
    ) -> tuple[Baseline, ...]:
        """Time baselines of a workload on inputs as an admission draws them."""
        request = TaskBaselinesRequest(task=task, workload=workload, settings=settings, names=names)
        seconds = self._admission_seconds  # torch.compile may start from nothing
        answer, _ = self._ask(request, BaselinesReply, seconds=seconds)
        return answer.baselines  # type: ignore[no-any-return]

    def probe_comparison(self) -> ComparisonProbeReply:
        """Plant differences in the device's memory and count them."""
        return self._ask(ProbeComparisonRequest(), ComparisonProbeReply)[0]  # type: ignore[no-any-return]

    def release(self, draw: int) -> None:
        """Forget a draw."""
        self._ask(ReleaseRequest(draw=draw), DoneReply)

    def close(self) -> None:
        """End the judge."""
        self._process.kill()

    def _ask(
        self, request: Any, expected: type, *, seconds: float | None = None
    ) -> tuple[Any, tuple[int, ...]]:
        with self._lock:
            self._ready()
            try:
                received = self._process.ask(
                    request, expected, OwnFailure, timeout_seconds=seconds or self._answer_seconds
                )
            except ChannelError as error:
                raise self._lost(error) from error
        if isinstance(received.message, OwnFailure):
            if not received.message.reason:
                _LOG.error("a bug in the judge:\n%s", self._process.last_words())
            raise received.message.error()
        return received.message, received.descriptors

    def _ready(self) -> JudgeFacts:
        """Configure on first use, so that the judge starts while other things go on."""
        if self._facts is None:
            try:
                received = self._process.ask(
                    self._configure, JudgeFacts, timeout_seconds=_START_SECONDS
                )
            except ChannelError as error:
                raise self._lost(error) from error
            self._facts = received.message
        return self._facts

    def _lost(self, error: ChannelError) -> ProcessLostError | DeadlineExceededError:
        # Whatever it would still say belongs to a question that nobody waits for any more.
        if not isinstance(error, ChannelTimeoutError):
            self._process.wait(_END_SECONDS)
        end = self._process.kill()
        if isinstance(error, ChannelTimeoutError):
            return DeadlineExceededError("the judge gave no answer in time and was ended")
        how = f"{end.describe()}: {end.last_words[-500:]}" if end is not None else str(error)
        return ProcessLostError(f"the judge is gone: {how}", cause=how)
