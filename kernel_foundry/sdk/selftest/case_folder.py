"""Reads folders of cases: task files, candidates and `expected.json`.

A folder with an `expected.json` holds the candidates that it names; the tasks lie beside it, in a
folder `tasks` there or further up, or are those of the project's own cases. Task files are parsed,
never executed. What is done with cases is in `run_cases.py`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.languages import fences, language_of_first_fence
from kernel_foundry.sdk.selftest.case import Case, Expectation
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.text_file import read_text_file

_OWN_CASES: Final = Path(__file__).parents[3] / "tests" / "cases"

_EXPECTED: Final = "expected.json"
_TASKS: Final = "tasks"
_NOT_CANDIDATES: Final = ("README",)
_KEYS: Final = ("outcomes", "task", "finding", "rule", "row", "gain_denied", "twin")


def read_cases(root: Path) -> tuple[Case, ...]:
    """Return all cases below `root`, in order of their names.

    Raises:
        InvalidArgumentError: a file is missing, unreadable or says what it cannot say, or there is
            no case; names the file and what is wrong.
        TaskInvalidError: a task file is no task.
    """
    if not root.is_dir():
        raise _wrong(root, "there is no such folder")
    cases = [case for path in sorted(root.rglob(_EXPECTED)) for case in _read_folder(root, path)]
    if not cases:
        raise _wrong(root, f"no case here: no {_EXPECTED} that names a candidate")
    _check_twins(root, cases)
    return tuple(sorted(cases, key=lambda case: case.name))


def own_cases() -> tuple[Case, ...]:
    """The project's own cases, which lie in its source tree and are not installed.

    Raises:
        InvalidArgumentError: this is an installed package.
    """
    if not _OWN_CASES.is_dir():
        raise InvalidArgumentError(
            "the cheats and their honest look-alikes are not installed with the package: run this "
            "in a clone of the project, or name a folder of cases with --cases"
        )
    return read_cases(_OWN_CASES)


def _read_folder(root: Path, expected: Path) -> Iterator[Case]:
    entries = _read_object(expected)
    files = {path.stem: path for path in sorted(expected.parent.glob("*.md"))}
    names = {key.removesuffix(".md"): key for key in entries}
    for stem, path in files.items():
        if stem not in names and stem not in _NOT_CANDIDATES:
            raise _wrong(path, f"{_EXPECTED} does not say what is expected of it")
    tasks = _Tasks(root, expected.parent)
    for stem, key in names.items():
        if stem not in files:
            raise _wrong(expected, f"{key!r}: there is no {stem}.md")
        yield _read_case(root, expected, files[stem], entries[key], tasks)


def _read_case(root: Path, expected: Path, path: Path, entry: Any, tasks: "_Tasks") -> Case:
    entry = entry if isinstance(entry, dict) else {"outcomes": entry}
    text = read_text_file(path, LONGEST_CANDIDATE)
    language = language_of_first_fence(text)
    if language is None:
        raise _wrong(path, f"no {fences()} block, so that its language is unknown")
    reader = _EntryReader(expected, path.stem, entry)
    return Case(
        name=path.relative_to(root).with_suffix("").as_posix(),
        text=text,
        language=Language(language.name),
        task=tasks.of_case(expected, path.stem, reader.text("task")),
        expectation=reader.expectation(),
        rows=reader.rows(),
    )


class _Tasks:
    """The tasks that a folder's cases may be for; each is read once, when a case needs it."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._paths: dict[str, Path] = {}
        self._own = {path.stem: path for path in (_OWN_CASES / _TASKS).glob("*.py")}
        """For cases that name one: what a case's own name tells depends on no other folder."""
        self._read: dict[Path, Task] = {}
        for place in (folder, *_task_folders(root, folder)):
            for path in sorted(place.glob("*.py")):
                self._paths.setdefault(path.stem, path)

    def of_case(self, expected: Path, case: str, name: str) -> Task:
        """Return the task called `name`; by default the one that the case's own name tells."""
        path = self._paths.get(name, self._own.get(name)) if name else self._told_by(case)
        if path is None:
            known = ", ".join(self._paths) or "none"
            problem = f"there is no task {name!r}" if name else "no task's name begins its own"
            raise _wrong(expected, f"{case!r}: {problem}; known are {known}")
        if path not in self._read:
            self._read[path] = read_task(path)
        return self._read[path]

    def _told_by(self, case: str) -> Path | None:
        stems = [stem for stem in self._paths if case.startswith(stem)]
        if stems:
            return self._paths[max(stems, key=len)]
        return next(iter(self._paths.values())) if len(self._paths) == 1 else None


def _task_folders(root: Path, folder: Path) -> Iterator[Path]:
    """Yield the folders of tasks that serve `folder`, nearest first, none above `root`."""
    for place in (folder, *folder.parents):
        yield place / _TASKS
        if place == root:
            return


class _EntryReader:
    """Reads one entry of `expected.json`; every error names the file, the case and the key."""

    def __init__(self, file: Path, case: str, entry: Mapping[str, Any]) -> None:
        self._file = file
        self._case = case
        self._entry = entry
        for key in entry:
            if key not in _KEYS:
                raise self._wrong(key, f"unknown key; known are {', '.join(_KEYS)}")

    def expectation(self) -> Expectation:
        gain_denied = self._entry.get("gain_denied", False)
        if not isinstance(gain_denied, bool):
            raise self._wrong("gain_denied", f"expected true or false, got {gain_denied!r}")
        twin = self.text("twin").removesuffix(".md")
        if twin and not gain_denied:
            raise self._wrong("twin", "goes with gain_denied")
        return Expectation(
            outcomes=self._outcomes(),
            finding=self._finding(),
            rule=self.text("rule"),
            gain_denied=gain_denied,
            twin=twin,
        )

    def text(self, key: str) -> str:
        value = self._entry.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(key, f"expected a text, got {value!r}")
        return value

    def rows(self) -> tuple[int, ...]:
        value = self._entry.get("row", [])
        rows = value if isinstance(value, list) else [value]
        if not all(type(row) is int for row in rows):
            raise self._wrong("row", f"expected numbers such as [12, 13], got {value!r}")
        return tuple(rows)

    def _outcomes(self) -> tuple[EvaluationOutcome, ...]:
        value = self._entry.get("outcomes", [])
        names = value if isinstance(value, list) else [value]
        if not names:
            raise self._wrong("outcomes", 'expected an outcome or several, such as "rejected"')
        known = {outcome.value: outcome for outcome in EvaluationOutcome}
        for name in names:
            if not isinstance(name, str) or name.lower() not in known:
                raise self._wrong("outcomes", f"unknown {name!r}; known are {', '.join(known)}")
        return tuple(known[name.lower()] for name in names)

    def _finding(self) -> FindingKind | None:
        name = self.text("finding")
        try:
            return FindingKind(name.lower()) if name else None
        except ValueError:
            known = ", ".join(kind.value for kind in FindingKind)
            raise self._wrong("finding", f"unknown {name!r}; known are {known}") from None

    def _wrong(self, key: str, problem: str) -> InvalidArgumentError:
        return _wrong(self._file, f"{self._case!r}, {key}: {problem}")


def _check_twins(root: Path, cases: list[Case]) -> None:
    honest = [case for case in cases if case.is_honest]
    for case in cases:
        if case.expectation.twin and twin_of(case, honest) is None:
            problem = f"{case.name!r}, twin: there is no honest case {case.expectation.twin!r}"
            raise _wrong(root, f"{problem} in {case.language.value} on task {case.task.name}")


def twin_of(case: Case, honest: list[Case]) -> Case | None:
    """Return the honest case that `case` names as its twin: in its language, on its task."""
    wanted = case.expectation.twin
    for other in honest:
        is_named = other.name == wanted or other.name.endswith(f"/{wanted}")
        if is_named and other.language is case.language and other.task == case.task:
            return other
    return None


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text_file(path, LONGEST_CANDIDATE))
    except json.JSONDecodeError as error:
        raise _wrong(path, f"no JSON: {error}") from error
    if not isinstance(content, dict):
        raise _wrong(path, 'expected an object such as {"case": "rejected"}')
    return content


def _wrong(path: Path, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{path}: {problem}", file=str(path))
