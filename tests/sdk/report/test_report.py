"""The report: one self-contained file that shows what the archive holds."""

import asyncio
import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from archive_svc.archive import LocalArchive
from evaluator_svc.signing import signed
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.report.write import write_report
from kernel_foundry.sdk.services import Targets
from tests.evidence import conftest as evidence
from tests.report_data import held_data
from tests.sdk.conftest import SPEC

_KEY = Ed25519PrivateKey.generate()


def test_report_holds_the_whole_run_and_loads_nothing(store: str, tmp_path: Path) -> None:
    with connect(Targets(store=store)) as foundry:
        path = write_report(foundry, "shown", tmp_path / "report.html")
        winner = foundry.best("shown")
        archived = foundry.ask_archive(lambda a: a.stats("shown")).evaluation_count
    data = held_data(path)
    assert data["run"]["winner"] == winner.candidate.digest
    assert data["run"]["task"] == "<b>odd</b> & name"
    assert len(data["rows"]) == len(data["evaluations"]) == archived
    last = next(row for row in reversed(data["rows"]) if row["candidate"] == data["run"]["winner"])
    detail = data["evaluations"][str(last["sequence"])]
    assert detail["device_code"] == winner.candidate.source.device_code
    assert detail["plan"] == winner.candidate.source.plan
    assert detail["verdict"]["speedup"] == winner.evaluation.speedup
    assert detail["profile"][1] == "no hardware counters: nothing is run"
    html = path.read_text()
    assert "<b>odd" not in html
    assert re.findall('https?://[^"]*', html) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=(?!\"data:,\")", html)


def test_a_report_of_the_same_run_is_the_same_file(store: str, tmp_path: Path) -> None:
    with connect(Targets(store=store)) as foundry:
        one, other = (write_report(foundry, "shown", tmp_path / name) for name in ("1", "2"))
    assert one.read_bytes() == other.read_bytes()


def test_a_policy_allows_the_reports_own_script_and_style_alone(store: str, tmp_path: Path) -> None:
    with connect(Targets(store=store)) as foundry:
        html = write_report(foundry, "shown", tmp_path / "report.html").read_text()
    policy = re.findall('Content-Security-Policy" content="([^"]*)"', html)[0]
    assert policy.startswith("default-src 'none'; ")
    for tag in ('script type="module"', "style"):
        inside = html.partition(f"<{tag}>")[2].partition(f"</{tag.split()[0]}>")[0]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag.split()[0]}-src 'sha256-{digest}'" in policy


def test_a_long_run_keeps_details_of_elites_their_ancestors_and_the_newest(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel_foundry.sdk.report.run_data.MOST_DETAILS", 4)
    with connect(Targets(store=store)) as foundry:
        data = held_data(write_report(foundry, "shown", tmp_path / "report.html"))
        elites = foundry.ask_archive(lambda a: a.elites("shown"))
    kept = {int(sequence) for sequence in data["evaluations"]}
    assert {row["sequence"] for row in data["rows"]} - kept
    digests = {row["candidate"] for row in data["rows"] if row["sequence"] in kept}
    assert {elite.candidate.digest for elite in elites} <= digests
    parents = {p for row in data["rows"] if row["sequence"] in kept for p in row["parents"]}
    assert parents <= digests


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
    attestation = evaluation.attestation
    assert attestation is not None
    verdict = held_data(path)["evaluations"]["1"]["verdict"]
    assert verdict["attestation"]["digest"] == attestation.digest
    assert verdict["attestation"]["key_fingerprint"] == fingerprint(attestation.public_key)
    assert verdict["attestation"]["seeds"]["n=8"] == [1, 2, 3]
    assert verdict["checks"][0]["figures"] == {"largest_error": 1.25e-07}
    assert "two samples are too quick" in {check["note"] for check in verdict["checks"]}
    first = verdict["workloads"][0]
    assert first["correctness"]["precision"]["rms_error"] == 2e-8
    assert first["kernel_times"] == to_plain(times)


def test_a_report_that_cannot_be_written_says_where(store: str, tmp_path: Path) -> None:
    """The run is not lost with it."""
    with (
        connect(Targets(store=store)) as foundry,
        pytest.raises(InvalidArgumentError, match=f"the report {tmp_path} cannot be written"),
    ):
        write_report(foundry, "shown", tmp_path)
