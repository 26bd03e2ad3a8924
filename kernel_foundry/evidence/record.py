"""Evidence records: one verdict with the task and the candidate that it is on, as a file.

A record can be made of whatever was judged and stored: all that is digested is in task, source and
evaluation. Keys and signatures are in `sdk/verification/signature.py` and
`evaluator_svc/signing.py`.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from kernel_foundry.bounded_json import parse_json
from kernel_foundry.domain.attestation import Attestation
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device_class import own_id
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.plain import PlainError, from_plain, to_plain
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.canonical import canonical_json
from kernel_foundry.evidence.python_literal import records_in
from kernel_foundry.shown_value import shown
from kernel_foundry.whole_file import writing

FORMAT: Final = "kernel-foundry-evidence-1"

_MEMBERS: Final = ("format", "task", "candidate", "evaluation")
_UNDIGESTED: Final = ("digest", "signature")
"""Members of an attestation that its digest does not cover."""
_MAX_FILE_BYTES: Final = 64 << 20
"""A record has some ten kilobytes; listings of machine code make it larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRecord:
    """A verdict that was signed for, with all that it is on."""

    task: Task
    source: KernelSource
    evaluation: Evaluation
    """Its `swept_count` is 0, it is not `is_final`, and it has no profile: a search sets these once
    it is signed. Its `device` is the id by which its evaluator knows it: a fleet adds the name."""

    @property
    def attestation(self) -> Attestation:
        """The evaluator's word."""
        attestation = self.evaluation.attestation
        assert attestation is not None, "a record is made of what was signed for"
        return attestation

    def digest(self) -> str:
        """Return the SHA-256 of what a signature covers, in hexadecimal.

        Raises:
            NotCanonicalError: a value has no canonical form.
        """
        return hashlib.sha256(canonical_json(self.digested())).hexdigest()

    def digested(self) -> dict[str, Any]:
        """Return the part that a signature covers: all but digest and signature themselves."""
        plain = self.to_plain()
        for name in _UNDIGESTED:
            del plain["evaluation"]["attestation"][name]
        return plain

    def to_plain(self) -> dict[str, Any]:
        """Return the record as plain data: what is in its file."""
        values = (FORMAT, self.task, self.source, self.evaluation)
        return dict(zip(_MEMBERS, map(_sparse, values), strict=True))


def record_of(task: Task, source: KernelSource, evaluation: Evaluation) -> EvidenceRecord:
    """Return the record of a verdict.

    Raises:
        InvalidArgumentError: nobody signed for it: the candidate did not pass, or it was judged
            before verdicts were signed. Or the verdict is on another candidate.
    """
    if evaluation.attestation is None:
        raise _unsigned(evaluation)
    if source.digest != evaluation.candidate:
        raise InvalidArgumentError("the verdict is on another candidate", field="candidate")
    signed = dataclasses.replace(
        evaluation,
        device=own_id(evaluation.device),
        swept_count=0,
        is_final=False,
        profile=None,
    )
    return EvidenceRecord(task=task, source=source, evaluation=signed)


def write_record(record: EvidenceRecord, path: Path) -> None:
    """Write the file of a record.

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    text = json.dumps(record.to_plain(), ensure_ascii=False, allow_nan=False, indent=1)
    with writing(f"the record {path}", field="path"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")


def is_program(path: Path) -> bool:
    """Return whether a file holds records beside code that no record covers.

    Python files do, and JSON files with sources, such as a `solution.json`.
    """
    if path.suffix == ".py":
        return True
    try:
        return path.suffix == ".json" and _sources(_content(path)) is not None
    except (OSError, ValueError):
        return False


def read_records(path: Path) -> tuple[EvidenceRecord, ...]:
    """Return the record in a file, or all that an exported Python file has; it is not run.

    The Python file may be a source in a JSON file, as in a `solution.json`.

    Raises:
        InvalidArgumentError: the file is no record; the message says where it stops being one.
    """
    try:
        content = _content(path)
        sources = [content] if path.suffix == ".py" else _sources(content)
        texts = [content]
        if sources is not None:
            texts = [record for source in sources for record in records_in(source)]
        return tuple(
            _record(parse_json(text, object_pairs_hook=_without_repetition)) for text in texts
        )
    except OSError as error:
        raise InvalidArgumentError(f"{path}: {error.strerror}", field="path") from error
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(
            f"{path} is neither an exported file nor a record: it is no JSON. `kfoundry evaluate"
            " --record` and `kfoundry runs record` write records; `kfoundry evaluate`"
            " judges candidates",
            field="path",
        ) from error
    except (ValueError, RecursionError, OverflowError, MemoryError) as error:
        raise InvalidArgumentError(
            f"{path} is neither an exported file nor a record: {error}", field="path"
        ) from error


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {_MAX_FILE_BYTES} bytes")
    return content


def _sources(content: bytes) -> list[bytes] | None:
    """Texts of the Python files in a JSON file; None where it has no member `sources`."""
    data = parse_json(content)
    if not isinstance(data, dict) or "sources" not in data:
        return None
    match data["sources"]:
        case [{"path": str(path), "content": str(text)}] if path.endswith(".py"):
            return [text.encode()]
    raise ValueError("its sources are not one Python file")


def _unsigned(evaluation: Evaluation) -> InvalidArgumentError:
    why = (
        "it was judged before verdicts were signed"
        if evaluation.passed
        else f"only what passed is signed for, and this ended as {evaluation.outcome.name}"
    )
    return InvalidArgumentError(f"there is no evidence record: {why}", field="attestation")


def _record(data: Any) -> EvidenceRecord:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f'it has no "format": "{FORMAT}"')
    if set(data) != set(_MEMBERS):
        odd = sorted(set(data) ^ set(_MEMBERS))[0]
        raise ValueError(f"{shown(odd)} is {'unknown' if odd in data else 'missing'}")
    evaluation = from_plain(Evaluation, data["evaluation"], "evaluation")
    if evaluation.attestation is None:
        raise PlainError("evaluation.attestation: is missing")
    for name in ("swept_count", "is_final", "profile"):
        if getattr(evaluation, name):
            raise PlainError(f"evaluation.{name}: nobody signs for it, and no record has it")
    record = EvidenceRecord(
        task=from_plain(Task, data["task"], "task"),
        source=from_plain(KernelSource, data["candidate"], "candidate"),
        evaluation=evaluation,
    )
    record.digest()  # raises for what has no canonical form
    return record


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a member that comes twice would be read one way here, another there."""
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a member comes twice")
    return data


def _sparse(value: Any) -> Any:
    """Return `value` as plain data without the fields that are at their default.

    So a field that a later version adds changes no digest of before it.
    """
    if isinstance(value, tuple):
        return [item if type(item) is str else _sparse(item) for item in value]
    kind: Any = type(value)
    defaults = _defaults(kind)
    if defaults is None:
        return to_plain(value)
    plain = {}
    for name, default in defaults:
        item = getattr(value, name)
        if default is dataclasses.MISSING or item != default:
            plain[name] = _sparse(item)
    return plain


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...] | None:
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple((field.name, field.default) for field in dataclasses.fields(kind))
