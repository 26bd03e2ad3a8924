"""What messages hold is counted before it is read: two bytes can be a message of their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.archive.v1 import archive_service_pb2
from kernel_foundry.common.v1 import evaluation_pb2
from kernel_foundry.errors import KernelFoundryError, MalformedAnswerError
from kernel_foundry.rpc import bounded_reader
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.connection import CallOptions, RetryPolicy
from kernel_foundry.rpc.field_count import check_field_count
from kernel_foundry.rpc.limits import REQUEST_FIELD_LIMIT, RESPONSE_FIELD_LIMIT
from kernel_foundry.rpc.server import running
from kernel_foundry.wire.message import to_message
from tests.archive.conftest import make_candidate, make_evaluation

EVALUATION = evaluation_pb2.Evaluation.DESCRIPTOR
MOST = 1000


def _length(number: int, content: bytes) -> bytes:
    """A field that has a length, its number below 16 and its content of up to 2 MiB."""
    size, varint = len(content), b""
    while size >= 0x80:
        varint += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + varint + bytes([size]) + content


WORKLOADS = EVALUATION.fields_by_name["workloads"].number
TIMING = evaluation_pb2.WorkloadResult.DESCRIPTOR.fields_by_name["timing"].number
SAMPLES = evaluation_pb2.Timing.DESCRIPTOR.fields_by_name["samples_ns"].number


def _samples(count: int) -> bytes:
    return _length(WORKLOADS, _length(TIMING, _length(SAMPLES, bytes(8 * count))))


def test_what_is_honest_counts_little() -> None:
    """A long text is one field, a thousand samples are some sixty."""
    message = to_message(
        make_evaluation(make_candidate("a"), median_ns=500.0), evaluation_pb2.Evaluation
    )
    message.evidence.add(name="log", value="x" * 1_000_000)
    data = message.SerializeToString()
    check_field_count(data, EVALUATION, MOST)
    check_field_count(_samples(10_000), EVALUATION, MOST)


@pytest.mark.parametrize(
    "data",
    [
        _length(WORKLOADS, b"") * 40_000,
        _length(WORKLOADS, _length(TIMING, b"") * 400) * 100,
        _samples(17 * MOST),
        b"\x78\x01" * 40_000,  # a field that nobody knows
    ],
    ids=["empty messages", "empty messages within", "numbers", "unknown fields"],
)
def test_many_fields_are_refused(data: bytes) -> None:
    evaluation_pb2.Evaluation.FromString(data)  # protobuf itself would take them
    with pytest.raises(ValueError, match=f"more than {MOST} fields"):
        check_field_count(data, EVALUATION, MOST)


@pytest.mark.parametrize(
    "end",
    [b"\x0a", b"\x0a\xff", b"\x0a\x05x", b"\xff" * 11, b"\x0b", b"\x09\0"],
    ids=["no length", "half a length", "too short", "a long number", "a group", "half a double"],
)
def test_what_is_no_message_is_refused(end: bytes) -> None:
    data = _length(WORKLOADS, b"") * 40_000 + end
    with pytest.raises(ValueError, match=r"ends|bytes|wire type"):
        check_field_count(data, EVALUATION, 1 << 20)


async def test_a_server_answers_before_it_reads_them(tmp_path: Path) -> None:
    """And lives: the next call is answered."""
    listen = f"unix:{tmp_path}/s"
    field = archive_service_pb2.AddEvaluationRequest.DESCRIPTOR.fields_by_name["evaluation"]
    data = _length(field.number, _length(WORKLOADS, b"") * (REQUEST_FIELD_LIMIT + 1))
    async with (
        running([archive_service(LocalArchive(f"sqlite:///{tmp_path}/runs.db"))], listen),
        grpc.aio.insecure_channel(listen) as channel,
    ):
        tell = channel.unary_unary("/kernel_foundry.archive.v1.ArchiveService/AddEvaluation")
        with pytest.raises(grpc.aio.AioRpcError, match=r"more than \d+ fields") as refused:
            await tell(data)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        archive = RemoteArchive(listen)
        assert await archive.list_runs() == ()
        await archive.close()


async def test_a_server_takes_nothing_compressed(tmp_path: Path) -> None:
    """A megabyte may expand to a gigabyte; limits are of what arrives."""
    listen = f"unix:{tmp_path}/s"
    async with (
        running([archive_service(LocalArchive(f"sqlite:///{tmp_path}/runs.db"))], listen),
        grpc.aio.insecure_channel(listen, compression=grpc.Compression.Gzip) as channel,
    ):
        get = channel.unary_unary("/kernel_foundry.archive.v1.ArchiveService/GetRun")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await get(_length(1, b"x" * 1_000_000))
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


class _Answering(grpc.GenericRpcHandler):
    def __init__(self, data: bytes) -> None:
        self._data = data

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        async def answer(_request: bytes, _context: object) -> bytes:
            return self._data

        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def _answering(
    listen: str, data: bytes, compression: grpc.Compression | None = None
) -> AsyncIterator[None]:
    server = grpc.aio.server(
        options=[("grpc.max_send_message_length", -1)], compression=compression
    )
    server.add_generic_rpc_handlers((_Answering(data),))
    server.add_insecure_port(listen)
    await server.start()
    yield
    await server.stop(None)


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"\xff" * 20, "not an answer of this method"), (b"\x0a\0" * 40_000, "more")],
    ids=["no message", "too many fields"],
)
async def test_a_client_says_whose_answer_is_none(
    data: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bounded_reader.RESPONSE_FIELD_LIMIT == RESPONSE_FIELD_LIMIT
    monkeypatch.setattr(bounded_reader, "RESPONSE_FIELD_LIMIT", MOST)
    listen = f"unix:{tmp_path}/s"
    async with _answering(listen, data):
        archive = RemoteArchive(listen)
        with pytest.raises(MalformedAnswerError, match=says) as refused:
            await archive.list_runs()
        assert refused.value.metadata == {"target": listen}
        await archive.close()


async def test_a_client_takes_nothing_compressed(tmp_path: Path) -> None:
    listen = f"unix:{tmp_path}/s"
    async with _answering(listen, b"x" * 1_000_000, compression=grpc.Compression.Gzip):
        archive = RemoteArchive(listen, CallOptions(retry=RetryPolicy(attempts=1)))
        with pytest.raises(KernelFoundryError, match=r"(?i)compress"):
            await archive.list_runs()
        await archive.close()
