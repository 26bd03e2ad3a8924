"""What the formats of projects and of T4 results say, as checks of ours."""

import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

PROJECT = {"name", "version", "description", "requires-python", "dependencies", "entry-points"}
GENERAL = {"name", "version", "edition", "license", "backends", "upstream", "source", "minver"}
GENERAL |= {"cuda", "hub", "kernel-depends", "neuron", "python-depends", "tpu", "xpu"}
FRAMEWORKS = {"torch", "torch-noarch", "tvm-ffi"}
NOARCH = {"pyext", "cuda_capabilities", "rocm_archs"}
BACKENDS = {"cpu", "cuda", "metal", "neuron", "rocm", "tpu", "xpu"}
VARIABLES = {"CMAKE_DL_LIBS"}


def check_python_project(files: Mapping[str, str], backend: str) -> dict[str, Any]:
    """Return `pyproject.toml`; an AssertionError says what is wrong."""
    found = tomllib.loads(files["pyproject.toml"])
    assert found["build-system"]["build-backend"] == backend
    requires = [re.split(r"[<>=]", r)[0] for r in found["build-system"]["requires"]]
    assert backend.partition(".")[0].replace("_", "-") in requires
    project: dict[str, Any] = found["project"]
    assert {"name", "version"} <= set(project) <= PROJECT
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", project["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", project["version"])
    for path, text in files.items():
        if path.endswith(".py"):
            ast.parse(text, path)
    for group in project.get("entry-points", {}).values():
        for target in group.values():
            module, _, function = target.partition(":")
            assert function in functions_of(files[f"{module.replace('.', '/')}/__init__.py"])
    return found


def functions_of(text: str) -> set[str]:
    return {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def check_kernel_builder(files: Mapping[str, str]) -> None:
    """Raise an AssertionError where it is no project of kernel-builder, edition 5."""
    build = tomllib.loads(files["build.toml"])
    general = build["general"]
    assert {"name", "version", "edition", "license", "backends"} <= set(general) <= GENERAL
    assert re.fullmatch(r"[a-z][-a-z0-9]*[a-z0-9]", general["name"])
    assert type(general["version"]) is int
    assert general["edition"] == 5
    assert general["license"]
    assert set(general["backends"]) <= BACKENDS
    assert general["backends"]
    (framework,) = set(build) & FRAMEWORKS
    assert set(build) <= {"general", framework, "kernel"}
    assert framework != "torch-noarch" or "kernel" not in build
    assert set(build["torch-noarch"]) <= NOARCH
    capabilities = build["torch-noarch"]["cuda_capabilities"]  # metadata.json needs them for CUDA
    assert capabilities
    assert all(re.fullmatch(r"\d+\.\d", capability) for capability in capabilities)
    package = f"torch-ext/{general['name'].replace('-', '_')}"
    exported = [
        node for node in ast.parse(files[f"{package}/__init__.py"]).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]  # fmt: skip
    assert exported, "a kernel says what it exports"
    known = {path.rpartition("/")[2].removesuffix(".py") for path in files if package in path}
    for path, text in files.items():
        if not path.startswith(package):
            continue
        for node in ast.walk(ast.parse(text, path, feature_version=(3, 9))):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.module in known | {"_ops"}, f"{path}: {node.module}"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                aliases = [alias.name for alias in node.names]
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else aliases
                imported = {module.partition(".")[0] for module in modules}
                assert imported <= sys.stdlib_module_names | {"torch"}, f"{path}: {imported}"
    assert any(
        path.startswith("tests/test_") and "kernels_ci" in text for path, text in files.items()
    )
    assert files["CARD.md"].startswith("---\n")
    assert "library_name: kernels" in files["CARD.md"].split("---")[1]
    assert "kernel-builder.lib.genKernelFlakeOutputs" in files["flake.nix"]
    assert files["flake.nix"].count("{") == files["flake.nix"].count("}")
    if framework == "torch-noarch":  # nothing is compiled: no sources where there are bindings
        assert not [path for path in files if path.startswith("torch-ext/") and path[-3:] != ".py"]
    benchmarks = [path for path in files if path.startswith("benchmarks/")]
    assert benchmarks
    for path in benchmarks:
        assert re.fullmatch(r"benchmarks/benchmark\w*\.py", path)
        kinds = [n for n in ast.parse(files[path]).body if isinstance(n, ast.ClassDef)]
        (kind,) = (k for k in kinds if "Benchmark" in map(ast.unparse, k.bases))
        names = {node.name for node in kind.body if isinstance(node, ast.FunctionDef)}
        workloads = {n.partition("_")[2] for n in names if n.startswith("benchmark_")}
        assert workloads
        assert {f"{step}_{w}" for step in ("setup", "verify") for w in workloads} <= names


def check_t4(found: Any) -> dict[str, Any]:
    """Return the only result; an AssertionError says what is wrong."""
    assert set(found) == {"schema_version", "results"}
    assert re.fullmatch(r"1\.\d+\.\d+", found["schema_version"])
    (result,) = found["results"]
    assert {"timestamp", "configuration", "times", "invalidity", "correctness"} <= set(result)
    datetime.fromisoformat(result["timestamp"])
    times = result["times"]
    numbers = ("compilation_time", "framework", "search_algorithm", "validation")
    assert all(isinstance(times[name], float) for name in numbers)
    assert all(time > 0 for time in times["runtimes"])
    known = {measured["name"] for measured in result["measurements"]}
    assert set(result["objectives"]) <= known
    assert all(set(m) == {"name", "value", "unit"} for m in result["measurements"])
    return dict(result)


def check_cmake(text: str, files: Mapping[str, str]) -> None:
    """Raise an AssertionError where it builds files or names variables that are not there."""
    for source in re.findall(r"[\w./]+\.(?:cpp|h)\b", text):
        assert source in files, source
    assert set(re.findall(r"\$\{(\w+)\}", text)) <= VARIABLES | {"CMAKE_CURRENT_SOURCE_DIR"}
    assert text.count("(") == text.count(")")
    assert re.search(r"^cmake_minimum_required\(VERSION 3\.\d+\)", text, re.MULTILINE)
