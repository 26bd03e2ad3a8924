"""The structure keeps what the README and the contract say of it."""

import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGES = ("kernel_foundry", "generator_svc", "evaluator_svc", "archive_svc", "landscapes")

MAY_IMPORT_GENERATED = re.compile(
    r"kernel_foundry/(wire|rpc)/|kernel_foundry/.*_pb2|"
    r"(evaluator|archive|generator)_svc/(experience_)?service\.py"
)


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in listed.stdout.splitlines()]


def _tree() -> list[str]:
    """Every path that the README's tree names; several stand on one line."""
    block = (ROOT / "README.md").read_text().split("## The tree")[1].split("```")[1]
    paths, folder = [], ""
    for line in block.strip().splitlines():
        names = list(takewhile(re.compile(r"\S+(/|\.py)$").match, line.split()))
        if line.startswith(" "):
            paths += [folder + name for name in names if name != "*.py"]
        else:
            folder = names[0]
            paths += names
    return paths


def test_every_path_of_the_threat_model_is_there() -> None:
    text = (ROOT / "docs/threat-model.md").read_text()
    for name in re.findall(r"`([a-z_]+/[\w/.]+)`", text):
        assert (ROOT / name).exists(), name


def test_every_path_of_the_readme_is_there() -> None:
    for path in _tree():
        assert (ROOT / path).exists(), path


def test_readme_names_every_folder_of_the_two_uppermost_levels() -> None:
    named = set(_tree())
    for path in _tracked("*.py"):
        parts = path.relative_to(ROOT).parts
        if len(parts) > 1:
            assert f"{parts[0]}/" in named, parts[0]
        if parts[0] in PACKAGES and len(parts) > 2:
            assert f"{parts[0]}/{parts[1]}/" in named, path


def test_no_source_file_is_longer_than_600_lines() -> None:
    for path in _tracked("*.py", "*.cpp", "*.hpp"):
        assert len(path.read_text().splitlines()) <= 600, path


PRINTS_PAST_THE_SINK = re.compile(
    r"\bclick\.echo\(|(?<![\w.])print\(|sys\.stdout\.write|sys\.__std|from rich\.console import|"
    r"rich\.markup|rich\.markdown|from_markup|from_ansi|TextColumn\((?![^\n]*markup=False)"
)


def test_commands_print_through_one_place() -> None:
    """Text of models is never markup, and never reaches a terminal as it is."""
    sink = {ROOT / "kernel_foundry/cli" / name for name in ("console.py", "output.py")}
    for path in set(_tracked("kernel_foundry/cli/*.py")) - sink:
        found = PRINTS_PAST_THE_SINK.search(path.read_text())
        assert found is None, f"{path}: {found}"


def test_generated_code_is_imported_only_at_the_edge() -> None:
    for package in PACKAGES:
        for path in _tracked(f"{package}/*.py"):
            relative = path.relative_to(ROOT).as_posix()
            if "_pb2" in path.read_text():
                assert MAY_IMPORT_GENERATED.search(relative), relative


def test_import_contracts_hold() -> None:
    result = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def test_the_evaluator_s_supervisor_loads_no_torch_and_nothing_native() -> None:
    """It outlives every candidate and every driver; those are in processes below it."""
    heavy = ("torch", "kernel_foundry_native", "ray")
    code = f"import evaluator_svc.ray_app, sys; print([m for m in {heavy} if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
