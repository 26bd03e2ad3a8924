"""The report: one self-contained file that shows what the archive holds."""

import asyncio
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from archive_svc.archive import LocalArchive
from evaluator_svc.signing import signed
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.local import Targets
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.evolution import Evolution
from kernel_foundry.sdk.report.chart import speedup_chart
from kernel_foundry.sdk.report.write import write_report
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.domain_values import run_spec
from tests.evidence import conftest as evidence

_KEY = Ed25519PrivateKey.generate()

SPEC = run_spec(
    "shown",
    task=Task(
        name="<b>odd</b> & name",
        reference="class Model: ...\n",
        workloads=(Workload(name="default"),),
    ),
    seed=5,
)


class _Reader(HTMLParser):
    """Collects tags that load something and all visible text."""

    def __init__(self) -> None:
        super().__init__()
        self.loading: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loads = {name for name, _ in attrs} & {"src", "href", "srcset"}
        if loads or tag in ("script", "iframe", "b"):
            self.loading.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'runs.db'}"

    async def fill() -> None:
        archive = LocalArchive(url)
        run = await archive.create_run(SPEC)
        await Evolution(
            evaluator=FakeEvaluator(),
            archive=archive,
            generator=FakeGenerator(),
            run=run,
            budget=Budget(evaluations=12),
            limits=EvaluationLimits(),
            in_flight=2,
            judging=1,
            listener=lambda _event: None,
        ).run()
        await archive.close()

    asyncio.run(fill())
    return url


def test_report_shows_the_winner_and_loads_nothing(store: str, tmp_path: Path) -> None:
    with connect(Targets(store=store)) as foundry:
        path = write_report(foundry, "shown", tmp_path / "report.html")
        winner = foundry.best("shown")
        archived = foundry.ask_archive(lambda a: a.stats("shown")).evaluation_count
    reader = _Reader()
    reader.feed(path.read_text())
    assert reader.loading == ["b"] * 5  # the five tiles, and nothing of the task's odd name
    assert winner.candidate.source.device_code.strip() in reader.text
    assert winner.candidate.source.plan.strip() in reader.text
    assert f"{winner.evaluation.speedup:.2f}×" in reader.text
    assert f"{archived} evaluations" in reader.text
    assert "<b>odd</b> & name" in reader.text
    assert "http" not in path.read_text()


def test_report_shows_what_the_winner_rests_on(tmp_path: Path) -> None:
    """Digest, key, seeds, checks with figures, trust and the distribution of errors."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    judged = evidence.evaluate()
    first, *others = judged.workloads
    times = (
        KernelTime(kernel="split", launches=2, median_ns=24e3),
        KernelTime(kernel="product", launches=1, median_ns=1.176e6),
    )
    judged = replace(judged, workloads=(replace(first, kernel_times=times), *others))
    evaluation = signed(evidence.TASK, evidence.SOURCE, judged, _KEY)

    async def add() -> None:
        archive = LocalArchive(url)
        await archive.create_run(replace(SPEC, name="signed", task=evidence.TASK))
        candidate = Candidate(source=evidence.SOURCE)
        await archive.add("signed", candidate, evaluation, request_id="1")
        await archive.close()

    asyncio.run(add())
    with connect(Targets(store=url)) as foundry:
        path = write_report(foundry, "signed", tmp_path / "report.html")
    reader = _Reader()
    reader.feed(path.read_text())
    attestation = evaluation.attestation
    assert attestation is not None
    for text in (
        attestation.digest,
        fingerprint(attestation.public_key),
        "seeds of n=8",
        "1, 2, 3",
        "comparison",
        "largest error 1.25e-07",
        "two samples are too quick",
        "Errors against float64",
        "6.00e-08",
        "25.6",
        "Time per kernel on n=8: split 2 × 12 µs (2 %), product 1 × 1.18 ms (98 %).",
    ):
        assert text in reader.text, text


def test_report_of_what_nobody_signed_for_says_so(store: str, tmp_path: Path) -> None:
    with connect(Targets(store=store)) as foundry:
        path = write_report(foundry, "shown", tmp_path / "report.html")
    assert "judged before verdicts were signed" in path.read_text()


def test_chart_of_nothing_has_axes_and_no_path() -> None:
    chart = speedup_chart(())
    assert chart.best_path == ""
    assert chart.y_ticks


def test_a_report_that_cannot_be_written_says_where(store: str, tmp_path: Path) -> None:
    """The run is not lost with it."""
    with (
        connect(Targets(store=store)) as foundry,
        pytest.raises(InvalidArgumentError, match=f"the report {tmp_path} cannot be written"),
    ):
        write_report(foundry, "shown", tmp_path)
