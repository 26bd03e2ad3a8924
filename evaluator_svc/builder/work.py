"""A builder's requests: prepare a configuration, build its units, bind its plan; any number."""

from typing import Any

from evaluator_svc.binding import bind_workload, describe
from evaluator_svc.builder.prepare import CandidateRefusedError, Toolchain, plan_refused, prepare
from evaluator_svc.builder.sweep import enumerate_configurations
from evaluator_svc.diagnosis.compiler_log import compile_findings, fails_static_assertion
from evaluator_svc.messages.locked import (
    LOG_CHARACTERS,
    BindReply,
    BindRequest,
    CandidateFailure,
    CompileReply,
    CompileRequest,
    EnumerateRequest,
    PrepareReply,
    PrepareRequest,
)
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.processes.locked_process import OpenCompiler, answer_attempts
from evaluator_svc.sandbox.attempt import AttemptRequest
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.parse import parse


def build(conversation: Conversation, opened: OpenCompiler) -> None:
    """Answer requests until the supervisor has enough; the last configuration is the one meant."""
    request: PrepareRequest | None = None
    prepared: PrepareReply | None = None
    received = conversation.receive(EnumerateRequest, PrepareRequest, AttemptRequest)
    if isinstance(received.message, AttemptRequest):
        answer_attempts(conversation, received.message)
    while True:
        message = received.message
        blobs: tuple[bytes, ...] = ()
        answer: object
        try:
            if isinstance(message, EnumerateRequest):
                answer = enumerate_configurations(message)
            elif isinstance(message, PrepareRequest):
                request = message
                answer = prepared = prepare(message, _toolchain(message.device.language))
            else:
                assert request is not None, "a candidate is prepared first"
                assert prepared is not None, "a candidate is prepared first"
                if isinstance(message, BindRequest):
                    answer = _bind(request, prepared, message.library_ops)
                else:
                    answer, blobs = _compile(opened.compiler, prepared, message.unit)
        except CandidateRefusedError as refusal:
            answer = CandidateFailure(outcome=refusal.outcome, findings=refusal.findings)
        conversation.send(answer, blobs=blobs)
        received = conversation.receive(
            EnumerateRequest, PrepareRequest, CompileRequest, BindRequest
        )


def _toolchain(language: Language) -> Toolchain:
    import kernel_foundry_native as native

    folders = native.cuda_include_paths() if language is Language.CUDA else ()
    return Toolchain(
        prelude=native.prelude(language.value),
        # Without assertions: they would print, and leave a CUDA device in an error.
        options=("-DNDEBUG", *(f"-I{folder}" for folder in folders)),
    )


def _bind(
    request: PrepareRequest, prepared: PrepareReply, library_ops: tuple[str, ...]
) -> BindReply:
    try:
        plan = parse(prepared.source.plan)
        sequences = [
            (
                workload.workload,
                bind_workload(
                    plan,
                    workload,
                    source=prepared.source,
                    device=request.device,
                    library_ops=library_ops,
                ),
            )
            for workload in request.workloads
        ]
    except PlanError as error:
        raise plan_refused(error) from error
    return BindReply(workloads=tuple(describe(name, sequence) for name, sequence in sequences))


def _compile(
    compiler: Any, prepared: PrepareReply, number: int
) -> tuple[CompileReply, tuple[bytes, ...]]:
    import kernel_foundry_native as native

    unit = prepared.units[number]
    try:
        built = compiler.compile(
            source=unit.source, options=list(unit.options), kernels=list(unit.kernels)
        )
    except native.CompileError as error:
        log = error.log[-LOG_CHARACTERS:]
        failed = CompileReply(
            succeeded=False,
            log=log,
            build_ns=0.0,
            findings=compile_findings(log, prepared.source.device_code),
            is_meant=not fails_static_assertion(log),
        )
        return failed, ()
    compiled = CompileReply(succeeded=True, log=built.log, build_ns=float(built.build_ns))
    return compiled, (built.code, built.assembly)
