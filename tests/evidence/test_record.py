"""A record is the same wherever it comes from, and its file can be checked by other tools."""

import asyncio
import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from archive_svc.archive import LocalArchive
from archive_svc.run.run_file import export_run, import_run
from kernel_foundry.common.v1 import evaluation_pb2
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.plain import from_plain, to_plain
from kernel_foundry.errors import EliteNotFoundError, InvalidArgumentError
from kernel_foundry.evidence.record import (
    EvidenceRecord,
    read_records,
    record_of,
    write_record,
)
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.record_of_run import record_of_run
from kernel_foundry.sdk.services import Targets
from kernel_foundry.sdk.verification.signature import check_integrity
from kernel_foundry.sdk.verification.statement import holds
from kernel_foundry.wire.message import from_message, to_message
from tests.domain_values import run_spec
from tests.evidence.conftest import SOURCE, TASK, evaluate

SPEC = run_spec("told", task=TASK, strategy="gradient")


def _over_the_wire(evaluation: Evaluation) -> Evaluation:
    message = to_message(evaluation, evaluation_pb2.Evaluation)
    return from_message(Evaluation, type(message).FromString(message.SerializeToString()))


def _add(url: str, evaluation: Evaluation) -> None:
    async def add() -> None:
        archive = LocalArchive(url)
        await archive.create_run(SPEC)
        await archive.add("told", Candidate(source=SOURCE), evaluation, request_id="1")
        await archive.close()

    asyncio.run(add())


def test_a_signature_holds_over_wire_store_and_exported_run(
    evaluation: Evaluation, record: EvidenceRecord, store_url: str, tmp_path: Path
) -> None:
    """What is signed at one end is checked at the other, a sweep's count in between."""
    swept = dataclasses.replace(_over_the_wire(evaluation), swept_count=24)
    _add(store_url, swept)
    export_run(store_url, "told", tmp_path / "run.gz")
    copy = f"sqlite:///{tmp_path / 'copy.db'}"
    import_run(copy, tmp_path / "run.gz")
    for url in (store_url, copy):
        with connect(Targets(store=url)) as foundry:
            found = record_of_run(foundry)
            assert record_of_run(foundry, "told", SOURCE.digest[:8]) == found
            assert foundry.best().evaluation.swept_count == 24
        write_record(found, tmp_path / "record.json")
        assert read_records(tmp_path / "record.json") == (found,) == (record,)
        assert holds(check_integrity(found))


def test_a_run_without_the_candidate_has_no_record_of_it(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    _add(url, evaluation)
    with connect(Targets(store=url)) as foundry, pytest.raises(EliteNotFoundError, match="f00d"):
        record_of_run(foundry, "told", "f00d")


def test_another_tool_can_check_a_file(record: EvidenceRecord, tmp_path: Path) -> None:
    """Nothing of ours: the file, sorted members, SHA-256, Ed25519; as docs/evidence.md has it."""
    write_record(record, tmp_path / "record.json")
    data = json.loads((tmp_path / "record.json").read_text())
    attestation = data["evaluation"]["attestation"]
    digest, signature = attestation.pop("digest"), attestation.pop("signature")

    def as_javascript(value: object) -> object:
        if isinstance(value, dict):
            return {name: as_javascript(item) for name, item in value.items()}
        if isinstance(value, list):
            return [as_javascript(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    text = json.dumps(
        as_javascript(data), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    # The one number here that Python writes otherwise than ECMAScript.
    text = text.replace("e-08", "e-8").replace("e-07", "e-7")
    assert hashlib.sha256(text.encode()).hexdigest() == digest
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(attestation["public_key"]))
    key.verify(bytes.fromhex(signature), bytes.fromhex(digest))


def test_fields_at_their_default_are_not_digested(record: EvidenceRecord) -> None:
    """A field that a later version adds leaves the digests of before it as they are."""
    plain = record.digested()
    assert "swept_count" not in plain["evaluation"]
    assert "trust" not in plain["evaluation"]
    assert "held_out" not in plain["evaluation"]["workloads"][0]
    assert plain["evaluation"]["workloads"][1]["held_out"] is True
    assert set(plain["evaluation"]["attestation"]) == {
        "seeds", "seeds_given", "signed_unix_s", "public_key",
    }  # fmt: skip


def test_evaluations_of_before_signatures_are_read_and_have_no_record() -> None:
    """Fields that older stores lack take their defaults."""
    old = to_plain(evaluate())
    for name in ("checks", "trust", "attestation"):
        del old[name]
    for result in old["workloads"]:
        del result["correctness"]["precision"]
    read = from_plain(Evaluation, old)
    assert (read.checks, read.attestation, read.trust.value) == ((), None, "full")
    with pytest.raises(InvalidArgumentError, match="before verdicts were signed"):
        record_of(TASK, SOURCE, read)


def test_what_failed_and_what_is_another_candidates_has_no_record(evaluation: Evaluation) -> None:
    another = dataclasses.replace(SOURCE, device_code="// another\n")
    with pytest.raises(InvalidArgumentError, match="another candidate"):
        record_of(TASK, another, evaluation)
    failed = Evaluation(
        candidate="c", task="t", device="fake:0", outcome=EvaluationOutcome.WRONG_RESULT
    )
    with pytest.raises(InvalidArgumentError, match="this ended as WRONG_RESULT"):
        record_of(TASK, SOURCE, failed)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "neither an exported file nor a record"),
        ("[]", 'no "format"'),
        ("[" * 100_000, "neither an exported file nor a record"),
        ('{"format": "kernel-foundry-evidence-2"}', 'no "format"'),
        ('{"format": "kernel-foundry-evidence-1"}', "'candidate' is missing"),
        ('{"a": 1, "a": 2}', "a member comes twice"),
    ],
)
def test_a_file_that_is_no_record_says_so(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(InvalidArgumentError, match=words):
        read_records(tmp_path / "file.json")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("evaluation", "attestation"), None, "evaluation.attestation: is missing"),
        (("evaluation", "newer"), 1, "unknown field 'newer'"),
        (("evaluation", "outcome"), "splendid", "no EvaluationOutcome"),
        (("task", "workloads"), [], "needs a workload"),
        (("candidate", "plan"), "\ud800", "not Unicode"),
        (("evaluation", "compile", "object_bytes"), 2**70, "beyond the integers"),
    ],
)
def test_a_record_with_an_odd_part_names_it(
    record: EvidenceRecord, path: tuple[str, ...], value: object, words: str, tmp_path: Path
) -> None:
    data = record.to_plain()
    part = data
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    (tmp_path / "file.json").write_text(json.dumps(data))
    with pytest.raises(InvalidArgumentError, match=words):
        read_records(tmp_path / "file.json")
