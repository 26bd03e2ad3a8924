"""A builder's requests: read a candidate, build its units, bind its plan; any number."""

import contextlib
from typing import Any

from evaluator_svc.builder.read_candidate import CandidateRefusedError, plan_refused, read_candidate
from evaluator_svc.builder.sweep import enumerate_configurations
from evaluator_svc.diagnosis.compiler_log import compile_findings, fails_static_assertion
from evaluator_svc.languages import Toolchain, backend_of
from evaluator_svc.messages.builder import (
    LOG_CHARACTERS,
    CompileReply,
    CompileRequest,
    EnumerateRequest,
    ReadCandidateReply,
    ReadCandidateRequest,
    TranslationUnit,
)
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import BindReply, BindRequest
from evaluator_svc.processes.binding import bind_workload, describe
from evaluator_svc.processes.conversation import Conversation
from evaluator_svc.processes.locked_process import OpenCompiler, answer_attempts
from evaluator_svc.sandbox.attempt import AttemptRequest
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.parse import parse


def build(conversation: Conversation, opened: OpenCompiler) -> None:
    """Answer requests until the supervisor has enough; the last configuration is the one meant."""
    request: ReadCandidateRequest | None = None
    parsed: ReadCandidateReply | None = None
    toolchain: Toolchain | None = None
    received = conversation.receive(EnumerateRequest, ReadCandidateRequest, AttemptRequest)
    if isinstance(received.message, AttemptRequest):
        answer_attempts(conversation, received.message)
    while True:
        message = received.message
        blobs: tuple[bytes, ...] = ()
        answer: object
        try:
            if isinstance(message, EnumerateRequest):
                answer = enumerate_configurations(message)
            elif isinstance(message, ReadCandidateRequest):
                request = message
                toolchain = backend_of(message.device.language).toolchain()
                answer = parsed = read_candidate(message, toolchain)
            else:
                assert request is not None, "a candidate is read first"
                assert parsed is not None, "a candidate is read first"
                assert toolchain is not None, "a candidate is read first"
                if isinstance(message, BindRequest):
                    answer = _bind(request, parsed, message.library_ops)
                else:
                    unit, code = parsed.units[message.unit], request.source.device_code
                    answer, blobs = _compile(opened.compiler, unit, toolchain, code)
        except CandidateRefusedError as refusal:
            answer = CandidateFailure(outcome=refusal.outcome, findings=refusal.findings)
        conversation.send(answer, blobs=blobs)
        received = conversation.receive(
            EnumerateRequest, ReadCandidateRequest, CompileRequest, BindRequest
        )


def _bind(
    request: ReadCandidateRequest, parsed: ReadCandidateReply, library_ops: tuple[str, ...]
) -> BindReply:
    try:
        plan = parse(request.source.plan)
        sequences = [
            (
                workload.workload,
                bind_workload(
                    plan,
                    workload,
                    source=request.source,
                    configuration=parsed.configuration,
                    device=request.device,
                    library_ops=library_ops,
                ),
            )
            for workload in request.workloads
            if workload.workload not in parsed.left_out
        ]
    except PlanError as error:
        raise plan_refused(error) from error
    return BindReply(workloads=tuple(describe(name, sequence) for name, sequence in sequences))


def _compile(
    compiler: Any, unit: TranslationUnit, toolchain: Toolchain, device_code: str
) -> tuple[CompileReply, tuple[bytes, ...]]:
    import kernel_foundry_native as native

    try:
        built = _build(compiler, unit, toolchain)
    except native.CompileError as error:
        log = error.log[-LOG_CHARACTERS:]
        failed = CompileReply(
            succeeded=False,
            log=log,
            build_ns=0.0,
            findings=compile_findings(log, device_code),
            is_meant=not fails_static_assertion(log),
        )
        return failed, ()
    compiled = CompileReply(succeeded=True, log=built.log, build_ns=float(built.build_ns))
    return compiled, (built.code, built.assembly)


def _build(compiler: Any, unit: TranslationUnit, toolchain: Toolchain) -> Any:
    """Build it; where that fails with the safe options, whose log then counts."""
    import kernel_foundry_native as native

    safe = toolchain.safe_options(unit.options)
    if safe != unit.options:
        with contextlib.suppress(native.CompileError):
            return compiler.compile(source=unit.source, options=unit.options, kernels=unit.kernels)
    return compiler.compile(source=unit.source, options=safe, kernels=unit.kernels)
