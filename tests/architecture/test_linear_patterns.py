"""Every pattern of ours takes time in proportion to a text, whoever wrote that.

A quadratic one would need minutes for these texts, a linear one half a second.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache

import pytest

PACKAGES = (
    "archive_svc",
    "evaluator_svc.behaviour",
    "evaluator_svc.cubin",
    "evaluator_svc.diagnosis",
    "evaluator_svc.evaluator",
    "evaluator_svc.inspector",
    "evaluator_svc.policy",
    "evaluator_svc.ptx",
    "evaluator_svc.tools",
    "generator_svc.experience.concepts",
    "generator_svc.llm.keys",
    "generator_svc.meta_prompts",
    "generator_svc.prompting",
    "generator_svc.recipes",
    "generator_svc.replies",
    "kernel_foundry.plan",
    "kernel_foundry.printable",
    "kernel_foundry.sdk.selftest.case_folder",
    "landscapes",
)
LENGTH = 100_000
SHAPES = (
    *("\n", " ", "\t", " \n", "\\", "\\\n", "(", "[", "{", "<", '"', "'", "`", "_", ".", "#\n"),
    *("a", "7", "=", "-", "/", "() ", "</a> ", "a ", "[ ", ", ", "{} ", "*", "%", ": "),
)
ANCHORED = {
    # Tried at the places alone where a name, a statement, a line or an argument begins.
    "evaluator_svc.diagnosis.clang_log": {"_QUOTED", "_CARET"},
    "evaluator_svc.policy.directives": {"_QUOTED", "_PARENTHESES"},
    "evaluator_svc.inspector.from_ptx.rules": {"_SYSTEM_FUNCTIONS"},
    "evaluator_svc.ptx.parse": {"_STATEMENT", "_DECLARATOR"},
    "evaluator_svc.tools.sanitizer_report": {"_PLACE"},
    "generator_svc.recipes.plain.kernel_text": {"_POSITION"},
    "generator_svc.replies.edits": {"_FENCE"},
}


def _modules() -> Iterator[object]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}."):
            if "migrations" not in found.name and not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def _within(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _within(one)
    elif isinstance(value, dict):
        yield from _within(tuple(value.values()))
    elif hasattr(value, "pattern"):
        yield from _within(value.pattern)


@cache
def patterns() -> dict[str, tuple[re.Pattern[str], bool]]:
    """Return each pattern that a module holds, and whether it is tried at a start alone."""
    found: dict[str, tuple[re.Pattern[str], bool]] = {}
    for module in _modules():
        own = str(vars(module)["__name__"])
        for name, value in vars(module).items():
            for place, pattern in enumerate(_within(value)):
                found[f"{own}.{name}.{place}"] = pattern, name in ANCHORED.get(own, ())
    return found


def test_all_patterns_are_found() -> None:
    found = patterns()
    assert len(found) > 100
    names = {key.rpartition(".")[0] for key in found}
    assert {f"{module}.{name}" for module in ANCHORED for name in ANCHORED[module]} <= names


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_no_pattern_takes_the_square_of_a_text(shape: str) -> None:
    text = (shape * LENGTH)[:LENGTH] + "!"
    for pattern, is_anchored in set(patterns().values()):
        if is_anchored:
            pattern.match(text)
        else:
            assert sum(1 for _ in pattern.finditer(text)) <= LENGTH + 2
