"""What is fuzzed: for each reader of hostile input, a function that any bytes may be given to.

A target returns for good input and for bad; it raises when the reader raised something else than
its own refusal, or said something that cannot be.
"""

import contextlib
import functools
import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from evaluator_svc.cubin import elf
from evaluator_svc.inspector import inspect_ptx, inspect_spirv
from evaluator_svc.messages.builder import CompileReply, ReadCandidateReply, ReadCandidateRequest
from evaluator_svc.messages.inspector import InspectReply, InspectRequest
from evaluator_svc.messages.locked import CandidateFailure, DoneReply, Ready, WorkloadNames
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.messages.object_report import ObjectReport
from evaluator_svc.messages.plausible import ImplausibleError, check_answer
from evaluator_svc.messages.runner import (
    LoadReply,
    LoadRequest,
    PoolReady,
    RunReply,
    StepTimes,
    StepTimesRequest,
    TimeReply,
    TimeRequest,
)
from evaluator_svc.policy.source import check_source
from evaluator_svc.processes.channel import FROM_LOCKED, Channel, ChannelError
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.spirv import SpirvError
from evaluator_svc.spirv import parse as parse_spirv
from generator_svc.replies.extraction import ReplyForm, extract
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.plain import from_plain, to_plain
from kernel_foundry.plan import (
    DeviceLimits,
    NameTable,
    PlanError,
    ScalarName,
    TensorName,
    bind,
    constants,
    default_configuration,
    kernels,
    parse,
)
from tests.domain_values import CPU

_CODE: Final = """\
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scale(const float* x, float* out, int n, float factor) { out[0] = x[0] * factor; }
"""
_PARENT: Final = KernelSource(
    language=Language.SYCL,
    device_code=_CODE,
    plan="def launch(x, out):\n    scale[1, 1](x, out, x.numel(), 2.0)\n",
)
_ANSWERS: Final = (
    CandidateFailure, CompileReply, DoneReply, LoadReply, PoolReady, ReadCandidateReply, Ready,
    RunReply, StepTimes, TimeReply,
)  # fmt: skip
_RECEIVE_SECONDS: Final = 1.0
_MOST_REASON: Final = 2_000


def _plan(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    names, limits = _task()
    with contextlib.suppress(PlanError):
        plan = parse(text)
        configuration = default_configuration(plan)
        values = constants(plan, names, configuration, limits)
        bind(
            plan,
            kernels(_CODE, "sycl", {**configuration, **values}),
            names=names,
            configuration=configuration,
            device=limits,
            language="sycl",
            library_ops=("matmul",),
        )


@functools.cache
def _task() -> tuple[NameTable, DeviceLimits]:
    names = NameTable(
        tensors=(
            TensorName(name="x", dtype="float32", shape=(6, 1000), role="input", path="x"),
            TensorName(name="w", dtype="float16", shape=(1000,), role="parameter", path="w"),
            TensorName(name="out", dtype="float32", shape=(6, 1000), role="output", path="out"),
        ),
        scalars=(ScalarName(name="eps", value=1e-5), ScalarName(name="heads", value=4)),
    )
    limits = DeviceLimits(
        compute_units=8, sub_group_size=16, shared_bytes=65536, max_block=1024, memory_bytes=1 << 30
    )
    return names, limits


def _reply(data: bytes) -> None:
    """Take a model's reply apart, with a parent to edit and without."""
    text = data.decode(errors="replace")
    for language in Language:
        for parent in (None, _PARENT):
            found = extract(text, language=language, parent=parent, is_cut=len(text) % 2 == 1)
            assert (found.source is None) == bool(found.failure)
            assert len(found.failure) < _MOST_REASON
            assert found.source is None or found.form is not ReplyForm.NONE


def _protocol(data: bytes) -> None:
    """Hear what a runner or builder says: `data` is all of it."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)
        theirs.send(data[: 1 << 16])
    conversation = Conversation(Channel(ours, accepts_descriptors=False, limits=FROM_LOCKED))
    with contextlib.closing(conversation), contextlib.suppress(ChannelError):
        for _ in range(64):
            received = conversation.receive(*_ANSWERS, timeout_seconds=_RECEIVE_SECONDS)
            assert isinstance(received.message, _ANSWERS)
            assert not received.descriptors
            request = _requests().get(type(received.message))
            with contextlib.suppress(ImplausibleError):
                check_answer(request, received.message, blob_count=len(received.blobs))


@functools.cache
def _requests() -> Mapping[type, object]:
    """Return the question for each kind of answer that is checked against its question."""
    names = WorkloadNames(workload="w", tensors=(), scalars=())
    source = KernelSource(language=Language.SYCL, device_code="", plan="")
    load = LoadRequest(
        source=source,
        configuration=(),
        device=CPU,
        workloads=(names,),
        kernels=(("k",),),
        unit_of_workload=(0,),
    )
    settings = MeasurementSettings(seconds=1.0)
    read_candidate = ReadCandidateRequest(
        source=source, configuration=(), device=CPU, workloads=(names,)
    )
    return {
        LoadReply: load,
        ReadCandidateReply: read_candidate,
        StepTimes: StepTimesRequest(workload="w", kernels=("k",), flush_bytes=0),
        TimeReply: TimeRequest(workload="w", settings=settings, poison=True, keep_count=2),
    }


def _spirv(data: bytes) -> None:
    """Read SPIR-V, and judge it."""
    with contextlib.suppress(SpirvError):
        parse_spirv(data)
        _reported(inspect_spirv(data, ("scale",)))
        return
    assert inspect_spirv(data).findings, "what cannot be read is refused"


def _ptx(data: bytes) -> None:
    """Read PTX, and judge it."""
    _reported(inspect_ptx(data, ("scale",)))


def _reported(report: ObjectReport) -> None:
    """Send a report as an inspector does, and hold it against what can be one."""
    request = InspectRequest(language=Language.CUDA, kernels=("scale",), log="")
    check_answer(
        request, from_plain(InspectReply, to_plain(InspectReply(report=report))), blob_count=0
    )


def _cubin(data: bytes) -> None:
    """Read a CUDA binary's sections."""
    with contextlib.suppress(elf.CubinError):
        elf.read(data)


def _source(data: bytes) -> None:
    """Look for what device code may not hold."""
    text = data.decode(errors="surrogateescape")
    for language in Language:
        check_source(text, language.value)


TARGETS: Mapping[str, Callable[[bytes], None]] = MappingProxyType(
    {
        "plan": _plan,
        "reply": _reply,
        "protocol": _protocol,
        "spirv": _spirv,
        "ptx": _ptx,
        "cubin": _cubin,
        "source": _source,
    }
)
