"""Every way in which a record is not what was signed for is found, and called what it is."""

import copy
import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator_svc.signing import signed
from kernel_foundry.domain.attestation import WorkloadSeeds
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.evidence.record import EvidenceRecord, read_records, record_of
from kernel_foundry.sdk.verification.signature import KEY
from kernel_foundry.sdk.verification.statement import Agreement, Statement
from kernel_foundry.sdk.verification.verify import is_intact, verification
from tests.evidence.conftest import DRAFT, SOURCE, TASK, evaluate

Change = Callable[[EvidenceRecord], EvidenceRecord]


def _differing(record: EvidenceRecord, own_key: str = "", trusted: tuple[str, ...] = ()):
    verified = verification(record, None, own_key=own_key, trusted=trusted)
    different = [s for s in verified.statements if s.agreement is Agreement.DIFFERS]
    assert verified.agrees is not (bool(different) or verified.is_signed_by_unknown_key)
    return {s.subject: s.note for s in different}


def _evaluation(record: EvidenceRecord, **changes: object) -> EvidenceRecord:
    evaluation = dataclasses.replace(record.evaluation, **changes)
    return dataclasses.replace(record, evaluation=evaluation)


def _attestation(record: EvidenceRecord, **changes: object) -> EvidenceRecord:
    return _evaluation(record, attestation=dataclasses.replace(record.attestation, **changes))


def _quicker(record: EvidenceRecord, *, median_too: bool) -> EvidenceRecord:
    first, *rest = record.evaluation.workloads
    samples = tuple(s / 2 for s in first.timing.samples_ns)
    timing = dataclasses.replace(first.timing, samples_ns=samples)
    if median_too:
        timing = dataclasses.replace(timing, median_ns=samples[0], ci95_ns=(samples[0],) * 2)
    return _evaluation(record, workloads=(dataclasses.replace(first, timing=timing), *rest))


CONTENT: dict[str, tuple[Change, set[str]]] = {
    "samples alone": (lambda r: _quicker(r, median_too=False), {"samples of n=8", "digest"}),
    "samples and median": (lambda r: _quicker(r, median_too=True), {"digest"}),
    "candidate": (
        lambda r: dataclasses.replace(
            r, source=dataclasses.replace(r.source, device_code="// other\n")
        ),
        {"candidate", "digest"},
    ),
    "candidate and its digest": (
        lambda r: dataclasses.replace(
            _evaluation(r, candidate=dataclasses.replace(r.source, plan="x").digest),
            source=dataclasses.replace(r.source, plan="x"),
        ),
        {"digest"},
    ),
    "task": (
        lambda r: dataclasses.replace(r, task=dataclasses.replace(r.task, reference="x = 1\n")),
        {"task", "digest"},
    ),
    "task's name": (
        lambda r: dataclasses.replace(r, task=dataclasses.replace(r.task, name="harder")),
        {"digest"},
    ),
    "checks": (lambda r: _evaluation(r, checks=r.evaluation.checks[:2]), {"digest"}),
    "trust": (lambda r: _evaluation(r, trust=Trust.SUSPECT), {"digest"}),
    "facts": (lambda r: _evaluation(r, evidence=()), {"digest"}),
    "seeds": (
        lambda r: _attestation(r, seeds=(WorkloadSeeds(workload="n=8", seeds=(7,)),)),
        {"digest"},
    ),
    "seeds that were given": (lambda r: _attestation(r, seeds_given=True), {"digest"}),
    "date": (lambda r: _attestation(r, signed_unix_s=1.0), {"digest"}),
}


def _leaves(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where each value of plain data stands."""
    items = part.items() if isinstance(part, dict) else enumerate(part)
    for name, value in items:
        if isinstance(value, dict | list):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name)


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return 1 if value is None else value + ("0" if isinstance(value, str) else 1)


def test_no_value_of_a_file_can_be_changed_or_left_out(
    record: EvidenceRecord, tmp_path: Path
) -> None:
    """Whatever it is: the file is no record any more, or it is not what was signed for."""
    path, untouched = tmp_path / "record.json", record.to_plain()
    survived = []
    for place in _leaves(untouched):
        for change in ("changed", "left out"):
            data = copy.deepcopy(untouched)
            part = data
            for name in place[:-1]:
                part = part[name]
            if change == "changed":
                part[place[-1]] = _other(part[place[-1]])
            else:
                del part[place[-1]]
            path.write_text(json.dumps(data))
            try:
                if is_intact(read_records(path)[0]):
                    survived.append((place, change))
            except InvalidArgumentError:
                continue
    assert survived == []


def test_an_untouched_record_is_what_was_signed_for(record: EvidenceRecord, public_key: str):
    assert _differing(record, public_key) == {}
    assert _differing(record, trusted=(fingerprint(public_key),)) == {}


@pytest.mark.parametrize("name", CONTENT)
def test_changed_content_is_found(record: EvidenceRecord, public_key: str, name: str):
    """The digest tells in any case, the part itself where it contradicts another."""
    change, subjects = CONTENT[name]
    differing = _differing(change(record), public_key)
    assert set(differing) == subjects
    assert differing["digest"] == "the content was changed after it was signed"


@pytest.mark.parametrize("name", CONTENT)
def test_a_digest_computed_again_without_the_key_is_found(
    record: EvidenceRecord, public_key: str, name: str
):
    changed = CONTENT[name][0](record)
    changed = _attestation(changed, digest=changed.digest())
    differing = _differing(changed, public_key)
    assert "digest" not in differing
    assert "computed again without the key" in differing["signature"]


def test_a_signature_or_key_that_is_none_is_found(record: EvidenceRecord, public_key: str):
    for changes in ({"signature": "00" * 64}, {"signature": "no"}, {"signature": ""}):
        assert "signature" in _differing(_attestation(record, **changes), public_key)
    for odd in ("", "zz", "00"):
        differing = _differing(_attestation(record, public_key=odd), public_key)
        assert set(differing) >= {"digest", "signature"}


def test_no_key_is_nobodys(record: EvidenceRecord):
    """Also where a shell's variable for --key is empty."""
    for odd in ("", "zz"):
        keyless = _attestation(record, public_key=odd)
        assert set(_differing(keyless, trusted=("",))) >= {"key", "signature"}


def test_a_foreign_key_is_named(record: EvidenceRecord, public_key: str):
    """Content that somebody changed and signed again is whole, and theirs."""
    foreign = Ed25519PrivateKey.generate()
    quicker = _quicker(record, median_too=True).evaluation
    forged = record_of(TASK, SOURCE, signed(TASK, SOURCE, quicker, foreign))
    name = fingerprint(forged.attestation.public_key)
    verified = verification(forged, None, own_key=public_key)
    assert verified.is_signed_by_unknown_key
    key = next(s for s in verified.statements if s.subject == KEY)
    assert f"a foreign key, another machine's: --key {name}" in key.note
    assert _differing(forged, public_key) == {}
    assert _differing(forged, public_key, trusted=(name,)) == {}
    # Who names a key wants that one, and not their own either.
    assert "none of those" in _differing(record, public_key, trusted=(name,))["key"]


def test_the_key_of_the_evaluator_that_judges_again_is_known(
    record: EvidenceRecord, key: Ed25519PrivateKey
):
    """It may be on another machine than the file; a run by another one leaves the key foreign."""
    notes = {}
    for name, used in (("same", key), ("other", Ed25519PrivateKey.generate())):
        again = signed(TASK, SOURCE, evaluate(), used)
        statements = verification(record, again).statements
        notes[name] = next(s for s in statements if s.subject == "key")
    assert notes["same"].agreement is Agreement.AGREES
    assert notes["other"].agreement is Agreement.NOT_COMPARABLE
    assert "the second evaluation decides" in notes["other"].note


@pytest.mark.parametrize("sample_ns", [0.0, -1.0, math.nan, math.inf])
def test_times_that_are_none_are_found_whoever_signed(sample_ns: float):
    first, *rest = evaluate().workloads
    timing = dataclasses.replace(
        first.timing, samples_ns=(sample_ns,), median_ns=sample_ns, ci95_ns=(sample_ns,) * 2
    )
    workloads = (dataclasses.replace(first, timing=timing), *rest)
    foreign = Ed25519PrivateKey.generate()
    forged = signed(TASK, SOURCE, evaluate(workloads=workloads), foreign)
    assert "samples of n=8" in _differing(record_of(TASK, SOURCE, forged))


def test_an_attestation_of_another_verdict_is_found(
    record: EvidenceRecord, key: Ed25519PrivateKey, public_key: str
):
    other: Evaluation = signed(TASK, SOURCE, evaluate(checks=()), key)
    moved = _evaluation(record, attestation=other.attestation)
    assert set(_differing(moved, public_key)) == {"digest"}


def test_seeds_that_the_caller_chose_are_told(key: Ed25519PrivateKey, public_key: str) -> None:
    """Fresh and secret ones need no word; of chosen ones a signature alone says too little."""

    def told(*, seeds_given: bool) -> list[Statement]:
        draft = dataclasses.replace(DRAFT, seeds_given=seeds_given)
        chosen = record_of(TASK, SOURCE, signed(TASK, SOURCE, evaluate(attestation=draft), key))
        statements = verification(chosen, None, own_key=public_key).statements
        return [s for s in statements if s.subject == "seeds"]

    assert told(seeds_given=False) == []
    (given,) = told(seeds_given=True)
    assert given.agreement is Agreement.NOT_COMPARABLE
    assert "chose" in given.note


def test_what_nobody_signs_for_is_in_no_record(record: EvidenceRecord, tmp_path: Path) -> None:
    """How many configurations a search tried is written after the verdict was signed."""
    plain, path = record.to_plain(), tmp_path / "record.json"
    plain["evaluation"]["swept_count"] = 999
    path.write_text(json.dumps(plain), encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match="swept_count"):
        read_records(path)
