"""Whatever a client sends: an answer that names what is wrong, and a server that lives.

Real services behind a real channel. For every method, every field of a request is replaced by
values that it should not have, and its bytes by what is no message.
"""

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from evaluator_svc.service import evaluator_service
from generator_svc.experience_service import experience_service
from generator_svc.llm.litellm_models import LiteLlmModels
from generator_svc.service import generator_service
from kernel_foundry.archive.v1 import archive_service_pb2, run_pb2
from kernel_foundry.domain.archive import LeaseHolder, RunBudget, RunState, Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin, LessonQuery
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.request import EvaluationRequest, ProposalOutcome, ProposalRequest
from kernel_foundry.domain.sweep import SweepRequest
from kernel_foundry.evaluator.v1 import evaluator_service_pb2
from kernel_foundry.generator.v1 import experience_service_pb2, generator_service_pb2
from kernel_foundry.ports import Evaluator
from kernel_foundry.rpc.limits import CHANNEL_OPTIONS
from kernel_foundry.rpc.server import running
from kernel_foundry.rpc.status import DETAILS_KEY
from kernel_foundry.sdk.foreign_file import python_of
from kernel_foundry.wire.message import build
from tests.archive.conftest import make_candidate, make_evaluation
from tests.domain_values import run_spec
from tests.generators import assembled_in
from tests.pointwise import pointwise_admission
from tests.shared_evaluator import Shared

PER_METHOD = 60
"""Mutations tried of each method, drawn by its name; there are thousands in all."""
DEADLINE_S = 30.0
FILES = (
    archive_service_pb2,
    evaluator_service_pb2,
    generator_service_pb2,
    experience_service_pb2,
)
METHODS = [
    method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
SPEC = run_spec("first", device="null:0", models=("recipes",), strategy="gradient")
KNOWN = {"run": "first", "name": "first", "models": "recipes", "strategy": "gradient"}
"""Texts by name of a field where a request means something with them only."""

INTEGERS = (-(2**63), -(2**31), -1, 0, 2**31 - 1, 2**63 - 1)
NUMBERS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1e308, 5e-324)
TEXTS = ("", "\0", "../../../etc/passwd", "\u202e\x1b[2J", "x" * 100_000, "{{7*7}}", "'; --")


def full(descriptor: Any, depth: int = 0) -> Message:
    """Return a message with every field set, to a depth that no request exceeds."""
    message: Message = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if field.message_type is not None and depth < 8:
            part = full(field.message_type, depth + 1)
            place = getattr(message, field.name)
            place.add().CopyFrom(part) if field.is_repeated else place.CopyFrom(part)
        elif field.message_type is None:
            _set(message, field, _ordinary(field))
    return message


def _ordinary(field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values[-1].number
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        text = KNOWN.get(field.name, "a")
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    return True if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else 1


def _set(message: Message, field: FieldDescriptor, value: Any) -> None:
    if field.is_repeated:
        del getattr(message, field.name)[:]
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


def mutations(message: Message, root: Message) -> Iterator[bytes]:
    """Iterate over `root` as bytes, each with one thing wrong somewhere below `message`."""
    for field in message.DESCRIPTOR.fields:
        before = type(message).FromString(message.SerializePartialToString())
        for value in _values(field):
            if value is None:
                message.ClearField(field.name)
            elif field.message_type is not None:
                place = getattr(message, field.name)
                place.extend(list(place)[:1] * 200) if field.is_repeated else place.Clear()
                getattr(message, field.name) if field.is_repeated else place.SetInParent()
            else:
                _set(message, field, value)
            yield root.SerializePartialToString()
            message.CopyFrom(before)
        if field.message_type is not None:
            part = getattr(message, field.name)
            for one in list(part)[:3] if field.is_repeated else (part,):
                yield from mutations(one, root)
            message.CopyFrom(before)


def _values(field: FieldDescriptor) -> tuple[Any, ...]:
    if field.message_type is not None:
        return (None, "empty or many")
    if field.enum_type is not None:
        return (None, 0, 99, -1, 2**31 - 1)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return (None, b"", b"\xff" * 1000)
        return (None, *TEXTS)
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return (None, *NUMBERS)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return (None, False)
    if field.cpp_type == FieldDescriptor.CPPTYPE_INT32:
        return (None, *(n for n in INTEGERS if abs(n) <= 2**31))
    return (None, *INTEGERS)


def no_messages(data: bytes) -> list[bytes]:
    """Return bytes that no method can read: cut, wrong wire types, text that is no UTF-8."""
    number = b"\x08"  # field 1 as a number; most have a message or a text there
    return [
        *(data[:n] for n in {1, len(data) // 2, len(data) - 1} if 0 < n < len(data)),
        b"\xff" * 20,
        b"\x00",
        b"\x0a\x02\xff\xfe",
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0b" * 200,
        number,
        random.Random(0).randbytes(500),
    ]


@pytest.fixture
async def channel(
    tmp_path: Path, local_evaluator: Callable[[str], Evaluator]
) -> AsyncIterator[grpc.aio.Channel]:
    archive = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}")
    await archive.create_run(SPEC)
    generator = assembled_in(tmp_path, LiteLlmModels())
    shared = Shared(local_evaluator("null"))
    services = [
        archive_service(archive),
        evaluator_service(shared),
        generator_service(generator.generator),
        experience_service(generator.experience),
    ]
    async with (
        running(services, f"unix:{tmp_path}/s", grace_s=1.0) as target,
        grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS) as channel,
    ):
        yield channel


async def _answer(
    channel: grpc.aio.Channel, method: Any, data: bytes, *, stream_s: float
) -> grpc.StatusCode:
    """Return the status of one call with these bytes; a refusal says which field.

    A stream that has not begun after `stream_s` may go on for ever: that is no bug either.
    """
    path = f"/{method.containing_service.full_name}/{method.name}"
    try:
        if method.server_streaming:
            async for _ in channel.unary_stream(path)(data, timeout=stream_s):
                break
        else:
            await channel.unary_unary(path)(data, timeout=DEADLINE_S)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
            _check_details(error)
        return error.code()
    return grpc.StatusCode.OK


def _check_details(error: grpc.aio.AioRpcError) -> None:
    packed = dict(error.trailing_metadata() or ())[DETAILS_KEY]
    assert isinstance(packed, bytes)
    kinds = (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest)
    details = Status.FromString(packed).details
    assert [d.Is(k.DESCRIPTOR) for d, k in zip(details, kinds, strict=True)] == [True, True]
    assert (error.details() or "").isprintable() or "\n" in (error.details() or "")


def _base(method: Any) -> Message:
    """Return a request that is answered OK, else one with every field set."""
    admission = pointwise_admission(SPEC.task)
    candidate = make_candidate("a")
    evaluation = make_evaluation(candidate, median_ns=100.0)
    lesson = Lesson(
        symptom="It overflows.",
        move="Subtract the maximum.",
        language=Language.SYCL,
        findings=(FindingKind.NOT_A_NUMBER,),
        before=Measures(memory=0, algorithm=0, synchronization=0),
        source="a measurement",
        origin=LessonOrigin.USER,
    )
    holder = LeaseHolder(token="h", host="a", process_id=1, process_start=1, kernel="k")
    asked = EvaluationRequest(task=SPEC.task, device="", source=candidate.source)
    fields: dict[str, dict[str, Any]] = {
        "CreateRun": {"spec": SPEC},
        "HoldRun": {"name": "first", "holder": holder, "budget": RunBudget(evaluations=3)},
        "FinishRun": {"name": "first", "state": RunState.FINISHED},
        "AddEvaluation": {
            "run": "first",
            "candidate": candidate,
            "evaluation": evaluation,
            "request_id": "1",
            "cost_usd": 1.0,
        },
        "ListEvaluations": {"run": "first", "limit": 10},
        "ListTransitions": {"run": "first", "limit": 10},
        "ListElites": {"run": "first"},
        "ListRuns": {"page_size": 1},
        "EvaluateKernel": {"request": asked},
        "EvaluateForeign": {
            "request": ForeignRequest(
                task=SPEC.task,
                device="",
                source=python_of("def custom_kernel(data): return data", "kernel.py"),
            )
        },
        "ProposeCandidate": {
            "request": ProposalRequest(
                run="first",
                task=SPEC.task,
                admission=admission,
                selection=Selection(operator=Operator.SEED),
                models=("recipes",),
                seed=1,
            )
        },
        "ReportOutcome": {
            "outcome": ProposalOutcome(
                run="first", selection=1, candidate=candidate, evaluation=evaluation
            )
        },
        "SweepKernel": {
            "request": SweepRequest(task=SPEC.task, device="", source=candidate.source)
        },
        "ListModelLimits": {"models": ("recipes",), "admission": admission},
        "AddLesson": {"lesson": lesson},
        "SearchLessons": {
            "query": LessonQuery(language=Language.SYCL, text="overflow"),
            "limit": 3,
        },
        "ListLessons": {"page_size": 3},
        "ListExchanges": {"run": "first", "page_size": 3},
        "ProbeHost": {"device": "null:0"},
    }
    kind: type[Message] = GetMessageClass(method.input_type)
    found = fields.get(method.name)
    return full(method.input_type) if found is None else build(kind, **found)


BAD = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNIMPLEMENTED}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_no_request_is_answered_by_a_bug(channel: grpc.aio.Channel, method: Any) -> None:
    base = _base(method)
    every = list(mutations(base, base))
    chosen = random.Random(method.full_name).sample(every, min(PER_METHOD, len(every)))
    answers = Counter([await _answer(channel, method, data, stream_s=0.5) for data in chosen])
    assert not BAD & set(answers), answers
    assert await _is_alive(channel)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_bytes_that_are_no_message_are_an_invalid_argument(
    channel: grpc.aio.Channel, method: Any
) -> None:
    """Except where they happen to be one, with fields that nobody knows."""
    kind = GetMessageClass(method.input_type)
    for data in no_messages(_base(method).SerializePartialToString()):
        try:
            kind.FromString(data)
        except Exception:  # noqa: BLE001  protobuf's own refusal, whatever its class
            answer = await _answer(channel, method, data, stream_s=DEADLINE_S)
            assert answer is grpc.StatusCode.INVALID_ARGUMENT, (data[:20], answer)
    assert await _is_alive(channel)


async def _is_alive(channel: grpc.aio.Channel) -> bool:
    call = channel.unary_unary("/kernel_foundry.archive.v1.ArchiveService/ListRuns")
    await call(run_pb2.Run().SerializeToString(), timeout=DEADLINE_S)
    return True
