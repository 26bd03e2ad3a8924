"""Exports every example's winner to every target, and runs what can run here.

Each example's candidate is judged as a run of its own; its winner goes to each target, is tried
against its reference in a fresh process and checked against the target's format. On a GPU folders
are built, installed and called as well. Exit code 1 where anything fails that should not.
Run: python -m benchmarks.export_matrix [--device cuda:0] [--examples softmax] [--out FILE]
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.export_matrix.cell import Cell, Exporter
from benchmarks.export_matrix.folder_run import built, called, write_folder
from benchmarks.result_file import RESULTS, ROOT, write_result
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.winner import Winner, winner_of_run
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.services import Targets

NAME: Final = "export_matrix"
EXAMPLES: Final = ROOT / "examples"
CHANGING: Final = frozenset({"residual_block"})
"""Examples whose reference changes its own buffers: no file can take its place."""
_LARGEST_ERROR: Final = 1e-3
"""Of a package's output, over its root mean square."""
_BUILDERS: Final = 4
"""Folders that are built at once."""
_RAN: Final = {
    "cpp": "its test program, built by CMake",
    "pybind": "installed, and called from Python",
    "hf": "its own tests, on what kernel-builder makes of it",
    "vllm": "loaded as a plug-in, and its module called",
}
_HEAD: Final = "| example | " + " | ".join(f"`{target}`" for target in TARGETS) + " |"


def main() -> int:
    """Judge, export, run and write the result file; print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="sycl:0", help="where to judge and run (sycl:0)")
    parser.add_argument("--examples", nargs="+", help="names of examples (all of the language)")
    parser.add_argument("--out", type=Path, help="result file")
    arguments = parser.parse_args()
    kind = arguments.device.partition(":")[0]
    language = Language(kind)
    names = arguments.examples or sorted(
        path.name.partition(".")[0] for path in EXAMPLES.glob(f"*.{kind}.md")
    )
    out = arguments.out or RESULTS / f"{NAME}_{kind}.json"
    rows: dict[str, dict[str, Cell]] = {}
    plain: dict[str, dict[str, dict[str, Any]]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        connect(Targets(store=f"sqlite:///{folder}/runs.db")) as foundry,
    ):
        exporter = Exporter(foundry)
        device = next(d for d in foundry.capabilities().devices if d.id == arguments.device)
        # What there is so far is written at once: devices are lent for minutes.
        for name in names:
            row = _row(exporter, foundry, name, language, arguments.device, Path(folder))
            if language is Language.CUDA:
                _run_folders(name, row, Path(folder))
            rows[name] = row
            plain[name] = {t: asdict(replace(cell, folder={})) for t, cell in row.items()}
            write_result(out, NAME, device, {"examples": plain})
            outcomes = ", ".join(f"{t} {cell.outcome}" for t, cell in row.items())
            print(f"{name}: {outcomes}", flush=True)
    print(table(plain))
    failed = [
        f"{name} to {target}: {cell.reason}"
        for name, row in rows.items()
        for target, cell in row.items()
        if (cell.outcome == "failed") != (name in CHANGING and cell.outcome != "refused")
    ]
    print(*failed, sep="\n")
    return int(bool(failed))


def winner_of_example(foundry: Foundry, name: str, language: Language, device: str) -> Winner:
    """Return an example's candidate, judged as the only one of a run."""
    foundry.optimize(
        EXAMPLES / f"{name}.py",
        language=language,
        device=device,
        models=("recipes",),
        budget=Budget(evaluations=1),
        run=name,
        start_from=[EXAMPLES / f"{name}.{language.value}.md"],
    )
    return winner_of_run(foundry, name)


def _row(
    exporter: Exporter,
    foundry: Foundry,
    name: str,
    language: Language,
    device: str,
    folder: Path,
) -> dict[str, Cell]:
    try:
        winner = winner_of_example(foundry, name, language, device)
    except KernelFoundryError as error:
        return {target: Cell(outcome="failed", reason=str(error)) for target in TARGETS}
    row = {}
    for target in TARGETS:
        module = _module(name, target)
        cell = row[target] = exporter.cell(winner, target, module)
        if cell.folder:
            write_folder(cell.folder, folder / module)
    text = TARGETS["torch"].source([winner], _module(name, "torch"))
    _file(folder, name).write_text(text, encoding="utf-8")
    return row


def _run_folders(name: str, row: Mapping[str, Cell], folder: Path) -> None:
    """Build and run the folders of an example's cells; what is timed runs alone."""
    cells = [(t, cell) for t, cell in row.items() if cell.folder and cell.outcome == "right"]

    def build(target: str) -> str:
        module = _module(name, target)
        return built(target, folder / module, module)

    with ThreadPoolExecutor(_BUILDERS) as pool:
        reasons = list(pool.map(build, (target for target, _ in cells)))
    for (target, cell), reason in zip(cells, reasons, strict=True):
        module = _module(name, target)
        cell.ran = _RAN[target]
        failure = reason or _call(cell, target, folder / module, _file(folder, name))
        if failure:
            cell.outcome, cell.reason = "failed", failure


def _call(cell: Cell, target: str, folder: Path, file: Path) -> str:
    """Call a package that can be called here; why it fails, or ""."""
    if target not in ("pybind", "vllm"):
        return ""
    found = called(target, folder, folder.name, file)
    if failure := found.get("failure", ""):
        return str(failure)
    cell.host_ns = found["host_ns"]
    if not found["error"] <= _LARGEST_ERROR:
        return f"wrong by {found['error']:.3g} of the output's root mean square"
    return ""


def _module(name: str, target: str) -> str:
    return f"fast_{name}_{target}"


def _file(folder: Path, name: str) -> Path:
    """Where the same kernels are as one Python file."""
    return folder / f"{_module(name, 'torch')}.py"


def table(rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the matrix in Markdown: host time of a call where it was taken, and size."""
    lines = [_HEAD, "|---" * (len(TARGETS) + 1) + "|"]
    for name, row in rows.items():
        words = [_word(row[target]) for target in TARGETS]
        lines.append(f"| {name} | {' | '.join(words)} |")
    return "\n".join(lines)


def _word(cell: Mapping[str, Any]) -> str:
    if cell["outcome"] != "right":
        return str(cell["outcome"])
    size = f"{cell['bytes'] / 1e3:.0f} kB"
    return size if cell["host_ns"] is None else f"{cell['host_ns'] / 1e3:.1f} µs, {size}"


if __name__ == "__main__":
    sys.exit(main())
