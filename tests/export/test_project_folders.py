"""Folders that are projects of other tools, compared with what those say of their formats."""

import json
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_foundry.domain.language import Language
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import read_records
from kernel_foundry.exported_form import FormReport
from kernel_foundry.sdk.export.export import ExportResult, write_exported
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.winner import Winner
from tests.export.project_schema import (
    check_cmake,
    check_kernel_builder,
    check_python_project,
    check_t4,
)
from tests.export.unjudged import unjudged_winner

NAME = "fast_blend_package"


@pytest.fixture(scope="module")
def winner() -> Winner:
    return unjudged_winner()


def folder(winner: Winner, target: str) -> dict[str, str]:
    form = TARGETS[target]
    assert form.folder is not None
    text = form.source([winner], NAME)
    return dict(form.folder(text, [winner], module=NAME, problem="blend"))


@pytest.fixture
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are imported from."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [n for n in sys.modules if n.partition(".")[0] == NAME]:
        del sys.modules[name]


def write(files: dict[str, str], where: Path) -> None:
    for path, text in files.items():
        where.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        where.joinpath(path).write_text(text, encoding="utf-8")


def test_the_binding_is_a_project_of_scikit_build_core(winner: Winner) -> None:
    files = folder(winner, "pybind")
    project = check_python_project(files, "scikit_build_core.build")
    assert project["tool"]["scikit-build"]["wheel"]["packages"] == [f"src/{NAME}"]
    check_cmake(files["CMakeLists.txt"], files)
    assert f"PYBIND11_MODULE(_{NAME}, module)" in files["binding.cpp"]
    assert '{"out", "float32", "<f4", false, {{8, 0}, {64, 1}}},' in files["binding.cpp"]
    assert "@" not in files["binding.cpp"]


def test_the_library_is_a_project_of_cmake(winner: Winner) -> None:
    files = folder(winner, "cpp")
    check_cmake(files["CMakeLists.txt"], files)


@pytest.mark.slow
def test_the_plugin_registers_the_operator(winner: Winner, importable: Path) -> None:
    files = folder(winner, "vllm")
    project = check_python_project(files, "setuptools.build_meta")
    ((name, target),) = project["project"]["entry-points"]["vllm.general_plugins"].items()
    assert name == NAME
    write(files, importable)
    module, _, function = target.partition(":")
    for _ in range(2):  # vLLM loads plug-ins more than once
        getattr(import_module(module), function)()
    operator = import_module(f"{module}.kernels").operator
    namespace, _, operator_name = operator._qualname.partition("::")
    assert namespace == "kfoundry"
    assert hasattr(torch.ops.kfoundry, operator_name)
    assert read_records(importable / module / "kernels.py") == (winner.record,)


@pytest.mark.slow
def test_the_hub_kernel_is_a_project_of_kernel_builder(
    winner: Winner, importable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = folder(winner, "hf")
    check_kernel_builder(files)
    write({path.removeprefix("torch-ext/"): text for path, text in files.items()}, importable)
    # What kernel-builder puts beside the sources.
    ops = types.ModuleType(f"{NAME}._ops")
    ops.add_op_namespace_prefix = lambda name: f"_blend_build7::{name}"  # type: ignore[attr-defined]
    sys.modules[f"{NAME}._ops"] = ops
    kernels = import_module(NAME)
    assert kernels.operator._qualname.startswith("_blend_build7::blend_")
    assert set(kernels.__all__) <= set(vars(kernels))
    model = kernels.Module(64)
    x = torch.randn(8, 64)
    with torch.no_grad():
        torch.testing.assert_close(model(x), x * 0.5 + model.linear.weight[0])
    assert kernels.stats()["last_reason"] == "x is on cpu; kernels run on cuda"
    compile(files[f"tests/test_{NAME}.py"], "test", "exec")
    assert files[f"source/{NAME}.cu"].endswith(winner.record.source.device_code)
    # The class that `kernels benchmark` sets up, times and checks.
    parent = types.ModuleType("kernels.benchmark")
    parent.Benchmark = type("Benchmark", (), {"kernel": kernels, "device": "cpu"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kernels.benchmark", parent)
    monkeypatch.setitem(sys.modules, "kernels", types.ModuleType("kernels"))
    found: dict[str, Any] = {}
    exec(files[f"benchmarks/benchmark_{NAME}.py"], found)
    for workload, rows in (("rows_8_cols_64", 8), ("rows_3_cols_96", 3)):
        benchmark = found["Kernels"]()
        for step in ("setup", "benchmark"):
            getattr(benchmark, f"{step}_{workload}")()
        assert len(benchmark.out) == rows
        torch.testing.assert_close(benchmark.out, getattr(benchmark, f"verify_{workload}")())


def test_a_verdict_is_a_t4_result(winner: Winner) -> None:
    text = TARGETS["t4"].packed("", winner, module=NAME, problem="blend")
    result = check_t4(json.loads(text))
    assert (result["invalidity"], result["correctness"]) == ("correct", 1)
    measured = {m["name"]: m["value"] for m in result["measurements"]}
    assert measured["speedup"] == winner.record.evaluation.speedup
    assert {"time_rows=8,cols=64", "time_rows=3,cols=96"} <= set(measured)


def test_a_folder_is_written_with_all_its_files(tmp_path: Path) -> None:
    report = FormReport(results=(), mechanisms=())
    files = {"a.toml": "x = 1\n", "src/b/c.py": "y = 2\n"}
    exported = ExportResult(text="", workloads=(), report=report, folder=files)
    for _ in range(2):
        write_exported(exported, tmp_path / "made")
    found = {path: tmp_path.joinpath("made", path).read_text() for path in files}
    assert found == files
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        write_exported(exported, tmp_path / "made" / "a.toml")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "src").symlink_to(outside)
    with pytest.raises(InvalidArgumentError, match="src is a link"):
        write_exported(exported, tmp_path / "linked")
    assert not list(outside.iterdir())


@pytest.mark.parametrize("target", ["cpp", "pybind", "hf", "vllm"])
def test_kernels_for_the_cpu_are_refused(winner: Winner, target: str) -> None:
    source = replace(winner.record.source, language=Language.SYCL)
    other = replace(winner, record=replace(winner.record, source=source))
    form = TARGETS[target]
    assert form.folder is not None
    with pytest.raises(InvalidArgumentError, match="kernels are for the CPU"):
        form.folder("", [other], module=NAME, problem="blend")
