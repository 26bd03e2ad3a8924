"""Pages of the service's answers: large texts make them shorter, and nothing is left out."""

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from archive_svc import service
from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.archive.v1 import archive_service_pb2 as pb2
from kernel_foundry.archive.v1.archive_service_pb2_grpc import ArchiveServiceStub
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.rpc.server import running


async def test_large_texts_make_pages_shorter(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    spec: RunSpec,
    make: Callable[..., tuple[Candidate, Evaluation]],
) -> None:
    monkeypatch.setattr(service, "_PAGE_BYTES", 1)
    archive = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}")
    await archive.create_run(spec)
    for level in range(3):
        candidate, evaluation = make(str(level), median_ns=500.0 + level, cell=(level, 0, 0))
        await archive.add("first", candidate, evaluation, request_id=str(level))
    elites = await archive.elites("first")
    assert len(elites) == 3
    archived = await archive.evaluations("first")
    async with running([archive_service(archive)], f"unix:{tmp_path / 's'}", grace_s=1.0) as target:
        async with grpc.aio.insecure_channel(target) as channel:
            stub = ArchiveServiceStub(channel)
            first = await stub.ListEvaluations(pb2.ListEvaluationsRequest(run="first", limit=100))
            best = await stub.ListElites(pb2.ListElitesRequest(run="first"))
        assert (len(first.evaluations), len(best.elites)) == (1, 1)
        remote = RemoteArchive(target)
        try:
            assert await remote.elites("first") == elites
            assert await remote.elites("first", limit=2) == elites[:2]
            assert await remote.evaluations("first") == archived
        finally:
            await remote.close()
