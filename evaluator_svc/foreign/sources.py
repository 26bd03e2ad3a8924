"""A candidate's sources on disk, and its entry imported or built from them."""

import importlib.util
import linecache
import sys
import traceback
from pathlib import Path
from typing import Any, Final

from evaluator_svc.runner.faults import CandidateFaultError, fault
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.foreign import ForeignSource

_BUILT: Final = (".cpp", ".cc", ".cu")
_MESSAGE_CHARACTERS: Final = 2000


def write_sources(source: ForeignSource, folder: Path) -> None:
    """Write all files below a folder."""
    for file in source.files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")


def entry_of(source: ForeignSource, folder: Path) -> Any:
    """Return the class or function that is called, from written sources.

    Raises:
        CandidateFaultError: the file raises, does not build, or has no such name.
    """
    try:
        is_built = Path(source.entry_file).suffix in _BUILT
        module = _built(source, folder) if is_built else _imported(source.entry_file, folder)
    except (Exception, SystemExit) as error:
        raise raised(error, "the file", folder, EvaluationOutcome.COMPILE_ERROR) from error
    entry = getattr(module, source.entry_name, None)
    if entry is None:
        raise fault(
            EvaluationOutcome.COMPILE_ERROR,
            FindingKind.COMPILE_ERROR,
            f"{source.entry_file} has no {source.entry_name}",
        )
    return entry


def raised(
    error: BaseException, doing: str, folder: Path, outcome: EvaluationOutcome
) -> CandidateFaultError:
    """Return the fault of code that raised, with the line of the candidate's own file."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    is_memory = isinstance(error, MemoryError) or "allocate memory" in str(error)
    kind = {
        EvaluationOutcome.COMPILE_ERROR: FindingKind.COMPILE_ERROR,
        EvaluationOutcome.PLAN_ERROR: FindingKind.PLAN,
    }.get(outcome, FindingKind.LAUNCH_RESOURCE)
    text = f"{type(error).__name__}: {error}"
    where = f" (line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""
    return fault(
        outcome,
        FindingKind.MEMORY_LIMIT if is_memory else kind,
        f"{doing} raises {text[-_MESSAGE_CHARACTERS:]}{where}",
        line=own[-1].lineno if own else None,
    )


def _imported(path: str, folder: Path) -> Any:
    sys.path.insert(0, str((folder / path).parent))
    sys.path.insert(0, str(folder))
    linecache.checkcache()
    spec = importlib.util.spec_from_file_location(Path(path).stem, folder / path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is neither Python nor C++")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _built(source: ForeignSource, folder: Path) -> Any:
    from torch.utils import cpp_extension

    build = folder / "build"
    build.mkdir()
    return cpp_extension.load(
        name="foreign_kernel",
        sources=[str(folder / f.path) for f in source.files if Path(f.path).suffix in _BUILT],
        extra_cflags=list(source.compiler_flags),
        extra_cuda_cflags=list(source.cuda_flags),
        extra_include_paths=[str(folder)],
        build_directory=str(build),
    )
