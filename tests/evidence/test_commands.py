"""Records on the command line: written, checked, run again; exit codes and words."""

import asyncio
import contextlib
import dataclasses
import json
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.cli import evaluate, verify
from kernel_foundry.cli.main import EXIT_NOT_CONFIRMED
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.evaluation import Evaluation, Fact
from kernel_foundry.domain.task import Task
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.evidence.python_literal import packed
from kernel_foundry.evidence.record import EvidenceRecord, read_records, record_of, write_record
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.sdk.verification.verify import Verification, verification
from tests.cli.conftest import CANDIDATE, TASK, run_kfoundry
from tests.domain_values import run_spec
from tests.evidence import conftest as signed_by_hand

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(served: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task, candidates, and the record of one that passed on the null device."""
    path: Path = tmp_path_factory.mktemp("evidence")
    (path / "relu.py").write_text(TASK)
    (path / "relu.md").write_text(CANDIDATE)
    (path / "wrong.md").write_text(CANDIDATE.replace("null_relu", "null_copy"))
    arguments = ("evaluate", "relu.py", "relu.md", "--json", "--record", "r.json")
    judged = run_kfoundry(path, *arguments, evaluator=served)
    assert judged.returncode == 0, judged.stderr
    assert "record: r.json" in judged.stderr
    (path / "verdict.json").write_text(judged.stdout)
    return path


def _verify(
    folder: Path, *arguments: str, evaluator: str = "local"
) -> tuple[int, dict[str, dict[str, str]]]:
    result = run_kfoundry(folder, "verify", *arguments, "--json", evaluator=evaluator)
    told = json.loads(result.stdout)
    assert told["agrees"] is (result.returncode == 0), result.stderr
    return result.returncode, {s["subject"]: s for s in told["statements"]}


def test_a_record_is_checked_and_run_again(folder: Path, served: str) -> None:
    _, lines = _verify(folder, "r.json", evaluator=served)
    # A busy host may have asked for a second measurement, which is in one of the two only.
    of_clock = ("time of", "speed-up", "check second measurement", "trust in")
    of_numbers = {n: s for n, s in lines.items() if not n.startswith(of_clock)}
    assert {s["agreement"] for s in of_numbers.values()} == {"agrees"}
    assert lines["key"]["note"] == "this machine's"
    assert lines["outcome"]["found"] == "PASSED"
    assert "time of default" in lines


def test_a_changed_record_is_named_and_not_run(folder: Path) -> None:
    """The words for people, too."""
    data = json.loads((folder / "r.json").read_text())
    data["candidate"]["device_code"] += "// better\n"
    (folder / "changed.json").write_text(json.dumps(data))
    result = run_kfoundry(folder, "verify", "changed.json")
    assert result.returncode == 1
    assert "the candidate in the record is not the one that was judged" in result.stdout
    assert "changed after it was signed" in result.stdout
    assert "second evaluation: none: the record is not what was signed for" in result.stdout
    said = result.stdout.splitlines()
    assert said[1].startswith("the record does not agree: candidate, digest")
    assert not any(line.startswith("✓ ") and "key" not in line for line in said)
    others = int(said[-1].split()[0])
    everything = run_kfoundry(folder, "verify", "changed.json", "--all").stdout.splitlines()
    assert everything[: len(said) - 1] == said[:-1]
    assert len(everything) == len(said) - 1 + others


def test_another_machines_key_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There only a run, or a word for the key, can tell."""
    name = fingerprint(read_records(folder / "r.json")[0].attestation.public_key)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("KERNEL_FOUNDRY_KEY_FILE", str(tmp_path / "evaluator.key"))
        code, lines = _verify(folder, "r.json", "--no-run")
        assert (code, lines["key"]["recorded"]) == (EXIT_NOT_CONFIRMED, name)
        assert "a foreign key" in lines["key"]["note"]
        told = run_kfoundry(folder, "verify", "r.json", "--no-run").stdout
        assert "the record is intact, signed by an unknown key" in told
        assert _verify(folder, "r.json", "--no-run", "--key", name)[0] == 0
    assert _verify(folder, "r.json", "--no-run")[0] == 0
    assert _verify(folder, "r.json", "--no-run", "--key", "0" * 16)[0] == 1


def test_the_code_of_a_python_file_is_not_vouched_for(folder: Path) -> None:
    """Whoever changed it could have left the record as it was."""
    literal = packed((folder / "r.json").read_bytes())
    (folder / "fast.py").write_text(f"import os\nos.abort()\nEVIDENCE = (\n    {literal!r},\n)\n")
    code, lines = _verify(folder, "fast.py", "--no-run")
    assert code == EXIT_NOT_CONFIRMED
    assert lines["digest"]["agreement"] == lines["signature"]["agreement"] == "agrees"
    assert lines["code of the file"]["agreement"] == "not_comparable"
    told = run_kfoundry(folder, "verify", "fast.py", "--no-run")
    assert told.returncode == EXIT_NOT_CONFIRMED
    assert "the code of the file was not checked" in told.stdout


@pytest.mark.parametrize("name", ["relu.py", "missing.json", "."])
def test_what_is_no_record_is_bad_input(folder: Path, name: str) -> None:
    result = run_kfoundry(folder, "verify", name)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_what_fails_has_no_record_and_keeps_its_verdict(folder: Path, served: str) -> None:
    arguments = ("evaluate", "relu.py", "wrong.md", "--record", "wrong.json")
    result = run_kfoundry(folder, *arguments, evaluator=served)
    assert result.returncode == 1
    assert "WRONG_RESULT" in result.stdout
    assert "1 failed (comparison on default)" in result.stdout
    assert "no record: only what passes is signed for" in result.stderr
    assert not (folder / "wrong.json").exists()


def test_the_json_of_a_verdict_says_what_it_rests_on(folder: Path) -> None:
    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["trust"] == "full"
    assert {c["kind"] for c in verdict["checks"]} >= {"comparison", "determinism"}
    assert all(
        set(c) == {"kind", "result", "workload", "figures", "note"} for c in verdict["checks"]
    )
    attestation = verdict["attestation"]
    assert attestation["key_fingerprint"] == fingerprint(attestation["public_key"])
    assert "default" in attestation["seeds"]
    assert len(attestation["signature"]) == 128


def test_the_record_of_a_run_is_its_winners(tmp_path: Path, evaluation: Evaluation) -> None:
    """By default; another candidate by its digest; none where nobody signed."""
    task, source = signed_by_hand.TASK, signed_by_hand.SOURCE
    spec = run_spec("judged", task=task, strategy="gradient")
    (tmp_path / "data").mkdir()

    async def add(candidate: KernelSource, verdict: Evaluation) -> None:
        archive = LocalArchive(f"sqlite:///{tmp_path / 'data' / 'runs.db'}")
        if candidate == source:
            await archive.create_run(spec)
        entry = Candidate(source=candidate)
        await archive.add("judged", entry, verdict, request_id=candidate.digest)
        await archive.close()

    asyncio.run(add(source, evaluation))
    told = run_kfoundry(tmp_path, "runs", "record", "--json", "-o", "winner.json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["candidate"] == source.digest
    assert read_records(tmp_path / "winner.json") == (record_of(task, source, evaluation),)
    by_digest = run_kfoundry(tmp_path, "runs", "record", "judged", "--candidate", source.digest[:9])
    assert by_digest.returncode == 0, by_digest.stderr
    assert (tmp_path / f"{source.digest[:16]}.record.json").exists()
    nobody = run_kfoundry(tmp_path, "runs", "record", "judged", "--candidate", "f00d")
    assert (nobody.returncode, nobody.stdout) == (2, "")
    assert "no candidate f00d that passed" in nobody.stderr
    others = (dataclasses.replace(source, plan=f"{n}\n") for n in range(1000))
    alike = next(other for other in others if other.digest[0] == source.digest[0])
    asyncio.run(add(alike, signed_by_hand.evaluate(alike)))
    either = run_kfoundry(tmp_path, "runs", "record", "judged", "--candidate", source.digest[0])
    assert (either.returncode, either.stdout) == (2, "")
    assert "2 candidates of run judged that passed begin with" in either.stderr


def test_a_record_is_of_the_text_that_was_judged(
    tmp_path: Path, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever edits the file meanwhile loses no record."""
    source = signed_by_hand.SOURCE
    text = render(source)
    candidate, task = tmp_path / "double.md", tmp_path / "double.py"
    candidate.write_text(text)
    task.write_text(TASK)

    class _EditedMeanwhile:
        def evaluate(self, _task: Task, _text: str, **_: object) -> Evaluation:
            candidate.write_text("something else")
            return evaluation

    foundry = contextlib.nullcontext(_EditedMeanwhile())
    monkeypatch.setattr(evaluate, "open_foundry", lambda **_: foundry)
    path = tmp_path / "r.json"
    arguments = [str(task), str(candidate), "--json", "--record", str(path)]
    evaluate.command.main(arguments, standalone_mode=False)
    assert read_records(path)[0].source == source


def test_times_of_a_device_that_is_not_here_are_not_confirmed(
    tmp_path: Path,
    record: EvidenceRecord,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever signs a record with a key of his own may name any device, and any time on it."""
    facts = signed_by_hand.FACTS | {"device": "another"}
    elsewhere = tuple(Fact(name=name, value=value) for name, value in facts.items())

    class _AnotherDevice:
        def verify(self, found: EvidenceRecord, **_: object) -> Verification:
            return verification(found, signed_by_hand.evaluate(evidence=elsewhere))

    foundry = contextlib.nullcontext(_AnotherDevice())
    monkeypatch.setattr(verify, "open_foundry", lambda **_: foundry)
    path = tmp_path / "r.json"
    write_record(record, path)
    code = verify.command.main([str(path), "--json"], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    claims = {key: told[key] for key in ("agrees", "numbers_confirmed", "times_confirmed")}
    assert (code, claims) == (
        EXIT_NOT_CONFIRMED,
        {"agrees": False, "numbers_confirmed": True, "times_confirmed": False},
    )
    assert "differs" not in {s["agreement"] for s in told["statements"]}
    assert verify.command.main([str(path)], standalone_mode=False) == EXIT_NOT_CONFIRMED
    shown = capsys.readouterr().out
    assert "the numbers agree, the times were not confirmed" in shown
    assert "the record agrees" not in shown
