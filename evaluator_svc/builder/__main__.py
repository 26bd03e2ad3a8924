"""A builder: reads one candidate's text and builds it, then is thrown away.

Hostile text meets our parser and the compiler only here. Knows nothing of buffers or launches.
"""

from evaluator_svc.builder.prepare import CandidateRefusedError, prepare
from evaluator_svc.conversation import Conversation
from evaluator_svc.locked_process import OpenDevice, serve
from evaluator_svc.messages import (
    CandidateFailed,
    Compiled,
    CompileRequest,
    Prepared,
    PrepareRequest,
    TranslationUnit,
)


def build(conversation: Conversation, opened: OpenDevice) -> None:
    """Answer one `PrepareRequest`, then any `CompileRequest` for its units."""
    import kernel_foundry_native as native

    request: PrepareRequest = conversation.receive(PrepareRequest).message
    prelude = native.prelude(request.device.language.value)
    try:
        prepared = prepare(request, prelude)
    except CandidateRefusedError as refusal:
        conversation.send(CandidateFailed(outcome=refusal.outcome, findings=refusal.findings))
        return
    conversation.send(prepared)
    _serve_compiles(conversation, opened, prepared)


def _serve_compiles(conversation: Conversation, opened: OpenDevice, prepared: Prepared) -> None:
    while True:
        request: CompileRequest = conversation.receive(CompileRequest).message
        compiled, code = _compile(opened, prepared.units[request.unit])
        conversation.send(compiled, blobs=(code,) if code else ())


def _compile(opened: OpenDevice, unit: TranslationUnit) -> tuple[Compiled, bytes]:
    import kernel_foundry_native as native

    try:
        built = opened.compiler.compile(
            source=unit.source, options=list(unit.options), kernels=list(unit.kernels)
        )
    except native.CompileError as error:
        return Compiled(succeeded=False, log=error.log, build_ns=0.0), b""
    return Compiled(succeeded=True, log=built.log, build_ns=float(built.build_ns)), built.code


if __name__ == "__main__":
    serve(build)
