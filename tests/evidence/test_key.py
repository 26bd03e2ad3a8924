"""The evaluator's key: made once, whole, for its owner alone, and out of a candidate's reach."""

import multiprocessing
from pathlib import Path

import pytest

from evaluator_svc.sandbox.host_paths import readable_paths
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.signing import Signer, own_public_key
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import record_of
from kernel_foundry.evidence.signature import check_integrity
from kernel_foundry.evidence.statement import holds
from kernel_foundry.plan.candidate_text import render
from tests.evidence.conftest import SOURCE, TASK, evaluate

TEXT = render(SOURCE.language.value, SOURCE.device_code, SOURCE.plan)


def _make(path: str) -> str:
    Signer(Path(path)).prepare()
    return own_public_key(Path(path))


def test_the_key_is_made_at_first_use_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "evaluator.key"
    assert own_public_key(path) == ""
    assert not path.exists()
    Signer(path).prepare()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["evaluator.key"]
    made = path.read_bytes()
    Signer(path).prepare()
    assert path.read_bytes() == made


def test_processes_that_start_at_once_take_the_same_key(tmp_path: Path) -> None:
    path = str(tmp_path / "evaluator.key")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert len(set(pool.map(_make, [path] * 6))) == 1


def test_what_passed_is_signed_with_it(tmp_path: Path) -> None:
    path = tmp_path / "evaluator.key"
    record = record_of(TASK, SOURCE, Signer(path).attested(TASK, TEXT, evaluate()))
    assert holds(check_integrity(record))
    assert record.attestation.public_key == own_public_key(path)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evaluator.key"
    _make(str(path))
    path.chmod(0o640)
    with pytest.raises(InvalidArgumentError, match="others may read the key"):
        Signer(path).prepare()


@pytest.mark.parametrize("content", ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_said_so(content: str, tmp_path: Path) -> None:
    path = tmp_path / "evaluator.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(InvalidArgumentError, match="is no key"):
        Signer(path).prepare()


def test_a_key_where_candidates_read_is_refused() -> None:
    """Such as beside the packages that a locked process needs."""
    path = Path(readable_paths()[0]) / "evaluator.key"
    with pytest.raises(InvalidArgumentError, match=r"candidates can read it.*KERNEL_FOUNDRY_KEY"):
        Signer(path).prepare()
    assert not path.exists()


def test_a_place_that_cannot_be_written_names_the_setting() -> None:
    with pytest.raises(InvalidArgumentError, match="set KERNEL_FOUNDRY_KEY_FILE"):
        Signer(Path("/dev/null/evaluator.key")).prepare()


def test_the_place_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    assert EvaluatorSettings().signing_key == tmp_path / "evaluator.key"
    chosen = {"KERNEL_FOUNDRY_KEY_FILE": str(tmp_path / "other.key")}
    assert EvaluatorSettings.from_environment(chosen).signing_key == tmp_path / "other.key"
