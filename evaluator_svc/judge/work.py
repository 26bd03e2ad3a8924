"""What the judge's process does: `Judge` behind a channel, until the channel is closed.

There is one for each device. It never runs a candidate's code, so no candidate can end it.
"""

import dataclasses
import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, Never

from evaluator_svc.hardware.visible_device import see_only
from evaluator_svc.judge.judge import Judge
from evaluator_svc.judge.openblas import set_threads_of_numpy
from evaluator_svc.judge.process_state import ProcessState, TaskStates, state_warning
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.foreign import CallFormRequest
from evaluator_svc.messages.judge import (
    AdmitRequest,
    BaselinesReply,
    BaselinesRequest,
    ChangeRequest,
    DecoyVerdict,
    DescribeRequest,
    DrawRequest,
    JudgeConfigure,
    LoadSeedRequest,
    MemoryRequest,
    PoisonRequest,
    PrecisionRequest,
    ProbeComparisonRequest,
    ReleaseRequest,
    TaskBaselinesRequest,
    VerifyChangedRequest,
    VerifyDecoyRequest,
    VerifyKeptRequest,
    VerifyRangesRequest,
    VerifyRequest,
)
from evaluator_svc.messages.locked import DoneReply, OwnFailure
from evaluator_svc.processes.channel import ChannelClosedError
from evaluator_svc.processes.conversation import Conversation
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import DeviceDriverError, KernelFoundryError
from kernel_foundry_native import NativeError

_REQUESTS = (
    AdmitRequest,
    DescribeRequest,
    DrawRequest,
    LoadSeedRequest,
    CallFormRequest,
    MemoryRequest,
    VerifyRequest,
    VerifyDecoyRequest,
    PrecisionRequest,
    PoisonRequest,
    VerifyKeptRequest,
    ChangeRequest,
    VerifyChangedRequest,
    VerifyRangesRequest,
    BaselinesRequest,
    ProbeComparisonRequest,
    ReleaseRequest,
    TaskBaselinesRequest,
)


def serve_judge(conversation: Conversation) -> Never:
    """Answer until the supervisor is gone; ends the process."""
    code = 0
    try:
        _serve(conversation)
    except ChannelClosedError:
        pass  # The supervisor is gone.
    except BaseException:  # noqa: BLE001  the supervisor keeps stderr
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)


def _serve(conversation: Conversation) -> None:
    configure: JudgeConfigure = conversation.receive(JudgeConfigure).message
    set_threads_of_numpy(configure.threads)
    local_id = see_only(configure.device.id)
    judge = Judge(
        configure.device,
        configure.threads,
        local_id=local_id,
        baselines=configure.baselines,
        baseline_seconds=configure.baseline_seconds,
    )
    conversation.send(judge.facts())
    states = TaskStates(ProcessState())
    while True:
        request = conversation.receive(*_REQUESTS).message
        is_done = _answer(conversation, partial(_handle_in_state, judge, states, request))
        if not is_done and not (judge.is_sound() and states.is_sound()):
            return  # The next question starts another one.


def _answer(conversation: Conversation, step: Callable[[], tuple[Any, tuple[int, ...]]]) -> bool:
    """Send what `step` returns, or its failure; returns whether it went well."""
    try:
        message, descriptors = step()
    except KernelFoundryError as error:
        message, descriptors = OwnFailure.of(error), ()
    except NativeError as error:
        message, descriptors = OwnFailure.of(DeviceDriverError(f"the judge's driver: {error}")), ()
    except Exception as error:  # noqa: BLE001  a bug must not end the judge
        traceback.print_exc()
        message, descriptors = OwnFailure(reason="", message=f"{type(error).__name__}: {error}"), ()
    conversation.send(message, descriptors=descriptors)
    return not isinstance(message, OwnFailure)


def _handle_in_state(judge: Judge, states: TaskStates, request: Any) -> tuple[Any, tuple[int, ...]]:
    """Handle `request` with what its task's file sets in this process, and no other's."""
    task: Task | None = getattr(request, "task", None) or judge.task_of(getattr(request, "draw", 0))
    states.enter("" if task is None else task.digest)
    try:
        message, descriptors = _handle(judge, request)
    finally:
        if task is not None:
            states.check(task.name)
    match message:
        case Admission() if changed := states.changed():
            warnings = (*message.warnings, state_warning(changed))
            return dataclasses.replace(message, warnings=warnings), descriptors
        case RunComparison() if changed := states.changed():
            return dataclasses.replace(message, changed_state=changed), descriptors
        case _:
            return message, descriptors


def _handle(judge: Judge, request: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the answer and the descriptors that travel beside it (the judge keeps its own)."""
    match request:
        case AdmitRequest():
            return judge.admit(request.task, request.peaks, request.memory_bytes), ()
        case DrawRequest():
            draw, descriptors = judge.draw(
                request.task,
                request.workload,
                request.tolerance,
                request.seeds,
                request.distributions,
                mixed=request.mixed,
                is_lean=request.is_lean,
            )
            return draw, descriptors
        case DescribeRequest():
            return judge.describe(request.task, shapes_alone=request.shapes_alone), ()
        case VerifyDecoyRequest():
            return DecoyVerdict(right=judge.verify_decoy(request.draw)), ()
        case VerifyRequest():
            return judge.verify(request.draw, request.slots), ()
        case PrecisionRequest():
            return judge.audit_precision(request.draw), ()
        case VerifyKeptRequest():
            kept, claimed = request.kept, request.claimed
            return judge.verify_kept(request.draw, kept, claimed, request.orders), ()
        case ChangeRequest():
            changed = judge.change_inputs(
                request.draw,
                with_parameters=request.with_parameters,
                is_second=request.is_second,
            )
            return changed, ()
        case VerifyChangedRequest():
            return judge.verify_changed(request.draw, request.seeds), ()
        case VerifyRangesRequest():
            return judge.verify_ranges(request.draw, request.ranges, request.guests), ()
        case CallFormRequest():
            return judge.call_form(request.draw), ()
        case MemoryRequest():
            return judge.memory_held(request.draw), ()
        case LoadSeedRequest():
            judge.load_seed(request.draw, request.seed)
        case BaselinesRequest():
            baselines = judge.time_baselines(request.draw, request.settings, request.names)
            return BaselinesReply(baselines=baselines), ()
        case TaskBaselinesRequest():
            baselines = judge.time_baselines_of(
                request.task, request.workload, request.settings, request.names
            )
            return BaselinesReply(baselines=baselines), ()
        case ProbeComparisonRequest():
            return judge.probe_comparison(), ()
        case PoisonRequest():
            judge.poison(request.draw)
        case _:
            judge.release(request.draw)
    return DoneReply(), ()
