"""Every choice of an evaluator in one place, with its environment variable."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

import platformdirs

from evaluator_svc.baseline_names import BESIDE_EAGER, UNLESS_TOLD
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.paths import data_dir

_PREFIX: Final = "KERNEL_FOUNDRY_"
_GIB: Final = 1 << 30


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _half_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorSettings:
    """How an evaluator works; each field is `KERNEL_FOUNDRY_<FIELD>` in the environment."""

    device_kinds: tuple[str, ...] = ("cuda", "sycl")
    """Device kinds to look for: "cuda", "sycl", "null". Comma-separated in the environment."""
    threads: int = 0
    """Threads of the CPU device and of torch; 0: all usable cores."""
    cache_dir: Path = Path(platformdirs.user_cache_dir("kernel-foundry"))
    """Object code, admissions and device peaks."""
    key_file: Path = Path()
    """Ed25519 key that verdicts are signed with, made at first use; empty: `evaluator.key` in the
    data folder."""
    unsafe_no_sandbox: bool = False
    """Run candidates even where nothing locks them in."""
    use_bubblewrap: bool = True
    """Wrap processes in bubblewrap where it works."""
    parallel_evaluations: int = 2
    """Evaluations in progress at once on a device; timings never overlap."""
    queue_limit: int = 64
    """Evaluations waiting beyond those; more are refused as busy."""
    spare_processes: int = 1
    """Builders and runners kept ready for each device that is the host's own processor."""
    spare_processes_of_gpu: int = 3
    """The same for each GPU; a waiting runner holds about half a GB of its memory."""
    builder_memory_bytes: int = 3 * _GIB
    """Private memory of a builder."""
    runner_memory_bytes: int = 0
    """Private memory of a runner, the pool of input sets included; 0: half of the machine's."""
    pool_limit_bytes: int = 4 * _GIB
    """Most data of the pool of input sets."""
    device_memory_bytes: int = 0
    """Most memory of each device that is used, as if it had no more; 0: all of it."""
    host_cache_bytes: int = 0
    """Last-level cache that timings on the host's cores empty; 0: what the system says. A virtual
    machine of few cores is often told the whole processor's, which would take it seconds."""
    warm_seconds: float = 0.1
    """Budget of the short measurement with warm caches."""
    baselines: tuple[str, ...] = UNLESS_TOLD
    """What is timed beside eager PyTorch, where the device has it. Comma-separated in the
    environment; a task whose compilation takes minutes on a CPU may do without, and
    torch.compile_max_autotune takes minutes anywhere."""
    baseline_seconds: float = 1.0
    """Longest measurement of one baseline; an admission repeats it until two agree."""
    admission_seconds: float = 600.0
    """Deadline of admitting a task (torch.compile included)."""
    judge_seconds: float = 120.0
    """Deadline of any other answer of the judge."""

    def __post_init__(self) -> None:
        """Refuse what would silently be left out.

        Raises:
            InvalidArgumentError: a baseline of no known name.
        """
        if unknown := sorted({*self.baselines} - {*BESIDE_EAGER}):
            raise InvalidArgumentError(
                f"no baseline {unknown[0]!r}; beside eager there are {', '.join(BESIDE_EAGER)}",
                field="baselines",
            )

    @property
    def thread_count(self) -> int:
        """Threads of the CPU device and of torch."""
        return self.threads or usable_cores()

    @property
    def signing_key(self) -> Path:
        """File of the key that verdicts are signed with."""
        return self.key_file if self.key_file != Path() else data_dir() / "evaluator.key"

    @property
    def runner_bytes(self) -> int:
        """Private memory of a runner."""
        return self.runner_memory_bytes or _half_of_memory()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Return the settings that `environment` names, defaults elsewhere.

        Raises:
            InvalidArgumentError: a value does not fit; names the variable.
        """
        values: dict[str, Any] = {}
        for field in fields(cls):
            name = _PREFIX + field.name.upper()
            if name in environment:
                values[field.name] = _read(name, environment[name], type(field.default))
        return cls(**values)


def _read(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in ("0", "1", "true", "false", "yes", "no"):
            raise InvalidArgumentError(f"{name}={text!r}: expected 0 or 1", field=name)
        return text.lower() in ("1", "true", "yes")
    if kind is tuple:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if issubclass(kind, Path):
        return Path(text)
    number = float if kind is float else int
    try:
        return number(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{name}={text!r}: expected a number", field=name) from error
