"""What KernelBench and GPU MODE take as a file, as checks of ours."""

import ast
import re


def check_kernelbench(text: str) -> None:
    """Raise an AssertionError where KernelBench would find no `ModelNew` to call.

    It runs reference and file in one namespace, as texts: the file may not bind the names that the
    reference's functions are found by.
    """
    names = _defined(text)
    assert "ModelNew" in names, "no class ModelNew"
    assert not names & {"Model", "get_inputs", "get_init_inputs"}


def check_popcorn(text: str) -> None:
    """Raise an AssertionError where GPU MODE's server would not take the file."""
    first, second = text.splitlines()[:2]
    assert re.fullmatch(r"#!POPCORN leaderboard \S+", first), first
    assert re.fullmatch(r"#!POPCORN gpu \S+", second), second
    assert "custom_kernel" in _defined(text)
    assert "stream" not in text.lower()


def _defined(text: str) -> set[str]:
    """Names of the classes and functions of a module."""
    body = ast.parse(text).body
    return {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
