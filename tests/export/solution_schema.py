"""What FlashInfer Trace and SOL-ExecBench say a solution is, as checks of ours."""

import ast
from pathlib import PurePosixPath
from typing import Any

MEMBERS = {"name", "definition", "author", "description", "spec", "sources"}
SPEC = {"target_hardware", "entry_point", "dependencies", "destination_passing_style"}
OPTIONAL = {"binding", "compile_options"}
FLASHINFER_LANGUAGES = {"python", "triton", "cpp", "cuda", "tilelang"}
SOL_PYTHON_LANGUAGES = {"pytorch", "triton", "cute_dsl", "cutile", "cudnn_frontend"}
SOL_CPP_LANGUAGES = {"cuda_cpp", "cutlass", "cudnn", "cublas"}


def check_flashinfer(solution: Any) -> None:
    """Raise an AssertionError where it is no solution of FlashInfer Trace."""
    spec = _checked(solution, "language")
    assert spec["language"] in FLASHINFER_LANGUAGES
    assert spec.get("binding", "tvm-ffi") in ("tvm-ffi", "torch")


def check_sol(solution: Any) -> None:
    """Raise an AssertionError where it is no solution of SOL-ExecBench."""
    spec = _checked(solution, "languages")
    languages = set(spec["languages"])
    assert languages
    assert languages <= SOL_PYTHON_LANGUAGES or languages <= SOL_CPP_LANGUAGES
    assert set(spec["target_hardware"]) <= {"B200", "LOCAL"}
    suffix = PurePosixPath(spec["entry_point"].partition("::")[0]).suffix
    assert (suffix == ".py") == bool(languages & SOL_PYTHON_LANGUAGES)


def _checked(solution: Any, language: str) -> dict[str, Any]:
    assert set(solution) == MEMBERS
    for name in ("name", "definition", "author", "description"):
        assert isinstance(solution[name], str), name
        assert solution[name], name
    spec: dict[str, Any] = solution["spec"]
    assert set(spec) - OPTIONAL == SPEC | {language}
    assert spec["target_hardware"]
    assert all(isinstance(h, str) and h for h in spec["target_hardware"])
    assert all(isinstance(d, str) and d for d in spec["dependencies"])
    assert isinstance(spec["destination_passing_style"], bool)
    paths = [source["path"] for source in solution["sources"]]
    assert paths
    assert len(set(paths)) == len(paths)
    for source in solution["sources"]:
        assert set(source) == {"path", "content"}
        path = PurePosixPath(source["path"])
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert source["content"]
        if path.suffix == ".py":
            ast.parse(source["content"])
    file, _, function = spec["entry_point"].partition("::")
    assert file in paths
    (entry,) = (s["content"] for s in solution["sources"] if s["path"] == file)
    if file.endswith(".py"):
        defined = [s.name for s in ast.parse(entry).body if isinstance(s, ast.FunctionDef)]
        assert function in defined
    return spec
