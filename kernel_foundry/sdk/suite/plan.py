"""What a suite is to do: its tasks, devices, models, and the budget of each run and of all.

Read from a folder of task files, or from a plan in YAML; docs/suites.md lists the keys. Task files
themselves are read in `sdk/task_file.py`.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from kernel_foundry.domain.archive import DEFAULT_STRATEGY, STRATEGY_NAMES, RunBudget
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.mechanisms import MECHANISMS
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.run_name import is_run_name
from kernel_foundry.domain.task import Task
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.errors import InvalidArgumentError, TaskInvalidError
from kernel_foundry.plain_yaml import PlainYamlError, read_yaml
from kernel_foundry.sdk.loop.budget import DEFAULT_EVALUATIONS
from kernel_foundry.sdk.suite.published_kernels import is_published
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.shown_value import shown

LONGEST_NAME: Final = 80
"""Characters of a suite's name; names of runs begin with it."""
_MOST_FAULTS: Final = 20
"""Of files that are no tasks, in one message."""
MOST_RUNS: Final = 10_000
"""Runs of one suite."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBudget:
    """What all runs of a suite may use together; None: unlimited."""

    cost_usd: float | None = None
    tokens: int | None = None
    """In and out."""
    hours: float | None = None
    """Of wall-clock time while a process works on the suite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """What a suite was asked to do; fixed when it is begun."""

    name: str
    tasks: tuple[Task, ...]
    language: Language
    devices: tuple[str, ...]
    """Device ids and kinds; a kind stands for all devices of that kind."""
    models: tuple[str, ...] = ()
    """Empty: the generator's default."""
    strategy: str = DEFAULT_STRATEGY
    seed: int = 0
    """Of the first run of each task; each repeat has the next one."""
    repeats: int = 1
    without: tuple[str, ...] = ()
    start_from: tuple[str, ...] = ()
    """Folders, files and suites, see `starting_points.py`."""
    in_flight: int = 2
    stop_at: float | None = None
    """Share of the traffic bound at which a run ends, as in `loop.budget.Budget`."""
    each: RunBudget
    whole: WholeBudget
    limits: EvaluationLimits


def read_plan(
    source: Path,
    name: str = "",
    *,
    given: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> SuitePlan:
    """Return the plan in `source`, a YAML file or a folder of task files.

    Args:
        source: The file or folder.
        name: Of the suite; empty: made of the source's name and the time.
        given: Values by the keys of a plan, which replace those in the file; `each` and `whole`
            are taken key by key.
        defaults: Values for keys that are neither given nor in the file.

    Raises:
        InvalidArgumentError: a key or a value does not fit; the message names it and what is
            expected.
        TaskInvalidError: task files cannot be read; the message says each.
    """
    if source.is_dir():
        settings: dict[str, Any] = {"tasks": ["."]}
        folder = source
    else:
        settings = _settings_in(source)
        folder = source.parent
    settings = {**(defaults or {}), **settings}
    for key, value in (given or {}).items():
        is_group = isinstance(value, Mapping)
        settings[key] = {**(settings.get(key) or {}), **value} if is_group else value
    try:
        return _plan(settings, folder, name or _name_of(source))
    except _PlanError as error:
        where = "the suite" if source.is_dir() else source.name
        raise InvalidArgumentError(f"{where}: {error}", field="plan") from error


class _PlanError(Exception):
    """A value that does not fit; the message lacks the file's name."""


def _name_of(source: Path) -> str:
    stem = source.resolve().stem
    clean = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in stem)
    return f"{clean[: LONGEST_NAME - 20]}-{time.strftime('%Y%m%d-%H%M%S')}"


def _settings_in(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml(path.read_text(encoding="utf-8"))
    except (PlainYamlError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path.name}: not valid YAML: {error}", field="plan") from error
    except OSError as error:
        raise InvalidArgumentError(
            f"{path}: {error.strerror}; expected a folder of task files or a plan in YAML",
            field="plan",
        ) from error
    if not isinstance(content, dict):
        raise InvalidArgumentError(
            f"{path.name}: expected keys with values, such as `tasks: [tasks/*.py]`", field="plan"
        )
    return content


def _plan(settings: Mapping[str, Any], folder: Path, name: str) -> SuitePlan:
    for key in settings:
        if key not in _KEYS:
            raise _PlanError(f"unknown key {shown(key)}; known are {', '.join(_KEYS)}")

    def setting(key: str, read: Callable[[str, Any], _T], default: _T) -> _T:
        return read(key, settings[key]) if settings.get(key) is not None else default

    if not is_run_name(name) or len(name) > LONGEST_NAME:
        raise _PlanError(f"name: expected 1 to {LONGEST_NAME} of A-Z a-z 0-9 . _ -")
    admits = setting("admit_degenerate", _boolean, default=True)
    tasks = _tasks("tasks", settings.get("tasks") or [], folder, admits)
    if not tasks:
        raise _PlanError("no tasks; expected task files, such as `tasks: [tasks/*.py]`")
    devices = _names("devices", settings.get("devices") or [])
    language = setting("language", _language, language_of(devices))
    for device in devices:
        if language_of((device,), language) is not language:
            raise _PlanError(
                f"devices: {shown(device)} does not run {language.value}; a suite has one language:"
                " make one for each"
            )
    repeats = setting("repeats", _count, 1)
    if repeats * len(tasks) > MOST_RUNS:
        raise _PlanError(
            f"{repeats * len(tasks)} runs, expected at most {MOST_RUNS}: split the suite"
        )
    each = _group(settings, "each", _EACH)
    whole = _group(settings, "whole", _WHOLE)
    has_end = {"evaluations", "minutes", "usd"} & set(each)
    limits = EvaluationLimits()
    return SuitePlan(
        name=name,
        tasks=tasks,
        language=language,
        devices=devices or (language.value,),
        models=setting("models", _names, ()),
        strategy=setting("strategy", _one_of(STRATEGY_NAMES), DEFAULT_STRATEGY),
        seed=setting("seed", _whole_number, 0),
        repeats=repeats,
        without=setting("without", _some_of(MECHANISMS), ()),
        start_from=_start_from(settings.get("from") or [], folder),
        in_flight=setting("in_flight", _count, 2),
        stop_at=setting("stop_at", _stop_at, None),
        each=RunBudget(
            evaluations=each.get("evaluations", None if has_end else DEFAULT_EVALUATIONS),
            minutes=each.get("minutes"),
            cost_usd=each.get("usd"),
            tokens=each.get("tokens"),
            requests_per_minute=setting("requests_per_minute", _count, None),
        ),
        whole=WholeBudget(
            cost_usd=whole.get("usd"), tokens=whole.get("tokens"), hours=whole.get("hours")
        ),
        limits=EvaluationLimits(
            build_seconds=setting("build_seconds", _amount, limits.build_seconds),
            run_seconds=setting("run_seconds", _amount, limits.run_seconds),
        ),
    )


def _tasks(key: str, value: Any, folder: Path, admits_degenerate: bool) -> tuple[Task, ...]:
    tasks: dict[str, Task] = {}
    faults: list[TaskInvalidError] = []
    for pattern in _names(key, value):
        for path in _files(folder, pattern):
            try:
                task = read_task(path, admit_degenerate=admits_degenerate)
            except TaskInvalidError as error:
                faults.append(error)
                continue
            if task.name in tasks:
                raise _PlanError(f"tasks: two are called {shown(task.name)}; rename one")
            tasks[task.name] = task
            if len(tasks) > MOST_RUNS:
                raise _PlanError(f"tasks: more than {MOST_RUNS}: split the suite")
    if len(faults) > 1:
        listed = [error.message for error in faults[:_MOST_FAULTS]]
        more = [f"and {len(faults) - _MOST_FAULTS} more"] if len(faults) > _MOST_FAULTS else []
        text = "\n  ".join([f"{len(faults)} files are no tasks:", *listed, *more])
        raise TaskInvalidError(text, file=str(folder))
    if faults:
        raise faults[0]
    return tuple(tasks.values())


def _files(folder: Path, pattern: str) -> list[Path]:
    """The task files that a path, a folder or a pattern with * stands for."""
    if "*" in pattern:
        try:
            found = sorted(folder.glob(pattern))
        except (NotImplementedError, ValueError) as error:
            raise _PlanError(f"tasks: {shown(pattern)}: {error}") from error
    else:
        path = folder / pattern
        found = sorted(path.glob("*.py")) if path.is_dir() else [path]
    if not found:
        raise _PlanError(
            f"tasks: {shown(pattern)}: no task file there; expected files such as x.py"
        )
    return [path for path in found if path.name != "__init__.py"]


def start_place(name: str, path: Path) -> str:
    """Return the whole path of a folder or of published kernels, else the name of a suite.

    Args:
        name: As it was written.
        path: Where it would lie.
    """
    return str(path.resolve()) if path.is_dir() or is_published(path) else name


def _start_from(value: Any, folder: Path) -> tuple[str, ...]:
    """Folders and files by their whole path, and names of suites."""
    return tuple(start_place(name, folder / name) for name in _names("from", value))


def language_of(devices: tuple[str, ...], default: Language = Language.SYCL) -> Language:
    """Return the language that the first device is named after, else `default`."""
    kind = devices[0].partition(":")[0] if devices else ""
    return Language(kind) if kind in list(Language) else default


def _group(
    settings: Mapping[str, Any], key: str, readers: Mapping[str, Callable[[str, Any], Any]]
) -> dict[str, Any]:
    """The values of `each` or `whole`, those that are given."""
    group = settings.get(key) or {}
    if not isinstance(group, Mapping):
        raise _PlanError(f"{key}: expected keys with values, got {shown(group)}")
    for name in group:
        if name not in readers:
            raise _PlanError(f"{key}: unknown key {shown(name)}; known are {', '.join(readers)}")
    return {
        name: readers[name](f"{key}.{name}", value)
        for name, value in group.items()
        if value is not None
    }


def _names(key: str, value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple) or not all(isinstance(one, str) for one in values):
        raise _PlanError(f"{key}: expected a list of names, got {shown(value)}")
    return tuple(dict.fromkeys(values))


def _boolean(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _PlanError(f"{key}: expected true or false, got {shown(value)}")
    return value


def _whole_number(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise _PlanError(f"{key}: expected a whole number from 0, got {shown(value)}")
    return value


def _count(key: str, value: Any) -> int:
    if _whole_number(key, value) < 1:
        raise _PlanError(f"{key}: expected a whole number from 1, got {shown(value)}")
    return int(value)


def _amount(key: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise _PlanError(f"{key}: expected a number above 0, got {shown(value)}")
    return float(value)


def _stop_at(key: str, value: Any) -> float:
    if value in ("never", NEVER):
        return NEVER
    if _amount(key, value) > 1:
        raise _PlanError(f"{key}: expected a share such as 0.97, or never, got {shown(value)}")
    return float(value)


def _language(key: str, value: Any) -> Language:
    return Language(_one_of([one.value for one in Language])(key, value))


def _one_of(choices: Any) -> Callable[[str, Any], str]:
    def read(key: str, value: Any) -> str:
        if value not in choices:
            raise _PlanError(f"{key}: expected one of {', '.join(choices)}, got {shown(value)}")
        return str(value)

    return read


def _some_of(choices: Any) -> Callable[[str, Any], tuple[str, ...]]:
    def read(key: str, value: Any) -> tuple[str, ...]:
        return tuple(_one_of(choices)(key, one) for one in _names(key, value))

    return read


_EACH: Final = {"evaluations": _count, "minutes": _amount, "usd": _amount, "tokens": _count}
_WHOLE: Final = {"usd": _amount, "tokens": _count, "hours": _amount}
_KEYS: Final = (
    "tasks",
    "devices",
    "language",
    "models",
    "strategy",
    "seed",
    "repeats",
    "without",
    "from",
    "in_flight",
    "stop_at",
    "each",
    "whole",
    "requests_per_minute",
    "build_seconds",
    "run_seconds",
    "admit_degenerate",
)
