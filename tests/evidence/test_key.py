"""The evaluator's key: made once, whole, for its owner alone, and out of a candidate's reach."""

import asyncio
import multiprocessing
import os
from pathlib import Path

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.sandbox.attempt import AttemptRequest, AttemptResult, AttemptTargets
from evaluator_svc.sandbox.attempts import attempt
from evaluator_svc.sandbox.host_paths import readable_paths
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.signing import Signer, own_public_key
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import record_of
from kernel_foundry.sdk.verification.signature import check_integrity
from kernel_foundry.sdk.verification.statement import holds
from tests.evidence.conftest import SOURCE, TASK, evaluate


def _make(path: str) -> str:
    Signer(Path(path)).have_key()
    return own_public_key(Path(path))


def test_the_key_is_made_at_first_use_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "evaluator.key"
    assert own_public_key(path) == ""
    assert not path.exists()
    Signer(path).have_key()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["evaluator.key"]
    made = path.read_bytes()
    Signer(path).have_key()
    assert path.read_bytes() == made


def test_processes_that_start_at_once_take_the_same_key(tmp_path: Path) -> None:
    path = str(tmp_path / "evaluator.key")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert len(set(pool.map(_make, [path] * 6))) == 1


def test_what_passed_is_signed_with_it(tmp_path: Path) -> None:
    path = tmp_path / "evaluator.key"
    record = record_of(TASK, SOURCE, Signer(path).attested(TASK, SOURCE, evaluate()))
    assert holds(check_integrity(record))
    assert record.attestation.public_key == own_public_key(path)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evaluator.key"
    _make(str(path))
    path.chmod(0o640)
    with pytest.raises(InvalidArgumentError, match="others may read the key"):
        Signer(path).have_key()


@pytest.mark.parametrize("content", ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_said_so(content: str, tmp_path: Path) -> None:
    path = tmp_path / "evaluator.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(InvalidArgumentError, match="is not a key"):
        Signer(path).have_key()


def test_a_key_where_candidates_read_is_refused() -> None:
    """Such as beside the packages that a locked process needs."""
    path = Path(readable_paths()[0]) / "evaluator.key"
    with pytest.raises(InvalidArgumentError, match=r"candidates can read it.*KERNEL_FOUNDRY_KEY"):
        Signer(path).have_key()
    assert not path.exists()


def test_a_place_that_cannot_be_written_names_the_setting() -> None:
    with pytest.raises(InvalidArgumentError, match="set KERNEL_FOUNDRY_KEY_FILE"):
        Signer(Path("/dev/null/evaluator.key")).have_key()


def test_the_place_can_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path))
    assert EvaluatorSettings().signing_key == tmp_path / "evaluator.key"
    chosen = {"KERNEL_FOUNDRY_KEY_FILE": str(tmp_path / "other.key")}
    assert EvaluatorSettings.from_environment(chosen).signing_key == tmp_path / "other.key"


def _targets(key_file: Path) -> AttemptTargets:
    return AttemptTargets(
        processes=(os.getpid(),),
        secrets=(str(key_file),),
        token="PRIVATE KEY",  # of its first line
        outside="",
        port=0,
        abstract_name="",
        scratch="",
        memory_bytes=0,
        file_bytes=0,
        open_files=0,
    )


@pytest.mark.parametrize("lock", ["bubblewrap", "landlock"])
def test_builder_and_runner_reach_neither_the_key_nor_who_holds_it(
    lock: str, tmp_path: Path
) -> None:
    """Real ones, as they are started for candidates; without their lock it can be read."""
    settings = EvaluatorSettings(
        device_kinds=("null",),
        cache_dir=tmp_path / "cache",
        key_file=tmp_path / "evaluator.key",
        use_bubblewrap=lock == "bubblewrap",
        runner_memory_bytes=1 << 30,
    )
    Signer(settings.signing_key).have_key()
    targets = _targets(settings.signing_key)
    read = AttemptRequest(name="read_secret", targets=targets)
    assert attempt(read).succeeded
    evaluator = LocalEvaluator(settings)
    (site,) = evaluator._sites.working()
    if lock == "bubblewrap" and "bubblewrap" not in site.isolation.mechanisms:
        pytest.skip(site.isolation.missing[0])
    memory = AttemptRequest(name="memory_of_other", targets=targets)
    for pool in (site.builders, site.inspectors, site.runners):
        process = pool.start_another()
        for request in (read, memory):
            answer = process.ask(request, AttemptResult, timeout_seconds=60.0)
            assert not answer.message.succeeded, request.name
        process.kill()
    asyncio.run(evaluator.close())
