"""GPU MODE: a folder a task, with `task.yml` and `reference.py`, which may import its neighbours.

The task file holds the reference with the modules of the suite that it imports, one after the
other, and a `Model` that calls `ref_kernel`.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from kernel_foundry.plain_yaml import PlainYamlError, read_yaml
from kernel_foundry.printable import printable
from kernel_foundry.sdk.task_import.entry import ImportEntry, NotRepresentableError
from kernel_foundry.sdk.task_import.one_file import one_file
from kernel_foundry.sdk.task_import.settings import (
    MOST_SETTINGS,
    ImportSetting,
    SettingGroup,
    literal,
    setting_groups,
)
from kernel_foundry.sdk.task_import.source_text import (
    bound_names,
    check_identifier,
    check_keywords,
    extended,
    free_names,
    function_of,
    keywords_of,
    parsed,
)
from kernel_foundry.sdk.task_import.suite_files import SuiteFiles
from kernel_foundry.sdk.task_import.written_inputs import WrittenInput, written_inputs
from kernel_foundry.shown_value import shown

_TASK: Final = "task.yml"
_REFERENCE: Final = "reference.py"
_SEED: Final = "seed"
_SUITE_CHECK: Final = """

def {name}(inputs, expected, actual):
    found = check_implementation(
        tuple(inputs) if len(inputs) > 1 else inputs[0],
        tuple(actual) if len(actual) > 1 else actual[0],
    )
    is_right, said = found if isinstance(found, tuple) else (found in ("", None, True), found)
    return bool(is_right) or str(said or "wrong")
"""
"""Puts the suite's check, which returns what is wrong, or whether all is well with what is wrong,
in the form of a task's."""
_FRESH: Final = {True: "torch.empty_like(data[{}])", False: "data[{}].clone()"}
"""What `ref_kernel` writes to in place of an input, which stays as it is, by whether it replaces
all of it."""
_MAPPINGS: Final = {"dict", "Dict", "Mapping", "TypedDict"}
_LONGEST_DESCRIPTION: Final = 16_384


def is_gpu_mode(files: SuiteFiles) -> bool:
    """Return whether there is a `task.yml`."""
    return bool(files.named(_TASK))


def read_gpu_mode(files: SuiteFiles) -> Iterator[ImportEntry]:
    """Return the entries of each folder with a `task.yml`, one for each group of settings."""
    for path in files.named(_TASK):
        name = "_".join(PurePosixPath(path).parts[-3:-1]) or files.name
        try:
            yield from _entries(files, path, name)
        except NotRepresentableError as error:
            yield ImportEntry(source=path, name=name, reason=str(error))


def _entries(files: SuiteFiles, path: str, name: str) -> Iterator[ImportEntry]:
    try:
        task = read_yaml(files.text(path))
    except PlainYamlError as error:
        raise NotRepresentableError(f"{_TASK}: {error}") from error
    if not isinstance(task, dict):
        raise NotRepresentableError(f"{_TASK}: expected keys with values, got {shown(task)}")
    if task.get("multi_gpu"):
        raise NotRepresentableError("runs on several GPUs")
    modules = _modules(task)

    def find(module: str) -> str | None:
        return files.beside(path, modules[module]) if module in modules else None

    text = one_file(files, find("reference") or files.beside(path, _REFERENCE), find)
    tree = parsed(text, _REFERENCE)
    generate = _generate(tree)
    settings: dict[str, Any] = {}
    if task.get("description"):
        settings["instructions"] = _description(task)
    if _has_own_check(tree):
        settings |= {"check": _check_name(tree), "compare": False}
    for number, group in enumerate(setting_groups(_settings(task, generate)), 1):
        part = "" if number == 1 else f"_{number}"
        where = path if number == 1 else f"{path}, settings {number}"
        if not group.is_timed:
            reason = f"only tests, no benchmark, with {shown(dict(group.constants))}"
            yield ImportEntry(source=where, name=name + part, reason=reason)
            continue
        reference, workloads = _task_file(text, tree, generate, group)
        yield ImportEntry(
            source=where,
            name=name + part,
            reference=reference,
            settings={**({"workloads": workloads} if workloads else {}), **settings},
            notes=_notes(task, tree),
        )


def _modules(task: Mapping[str, Any]) -> dict[str, str]:
    """Paths of the modules that a task lists, by the names they are imported by."""
    listed = task.get("files") or []
    if not isinstance(listed, list):
        raise NotRepresentableError(f"files: expected a list, got {shown(listed)}")
    found = {"task": "task.py", "utils": "utils.py"}
    for item in listed:
        if isinstance(item, dict) and str(item.get("name", "")).endswith(".py"):
            found[str(item["name"]).removesuffix(".py")] = str(item.get("source", ""))
    return found


def _generate(tree: ast.Module) -> ast.FunctionDef:
    """Return `generate_input`, where there is a `ref_kernel` to be made faster."""
    generate, reference = function_of(tree, "generate_input"), function_of(tree, "ref_kernel")
    if generate is None or reference is None:
        raise NotRepresentableError("no ref_kernel or no generate_input: nothing to make faster")
    if {"Model", "get_inputs"} & bound_names(tree):
        raise NotRepresentableError("it has a Model or a get_inputs of its own")
    written = written_inputs(reference)
    if any(each.position is None for each in written):
        raise NotRepresentableError(
            "ref_kernel writes into its input, and not into tensors that it is unpacked into with"
            " `a, b = data`"
        )
    returned = [node for node in ast.walk(reference) if isinstance(node, ast.Return) and node.value]
    if written and not returned:
        raise NotRepresentableError(
            f"ref_kernel writes into {_listed(written)} of its input and returns nothing, as its"
            " kernels have to: tasks return new tensors"
        )
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id == "input_t" for t in targets):
            words = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node)}
            if words & _MAPPINGS:
                raise NotRepresentableError("its input holds dictionaries (input_t)")
    return generate


def _written(tree: ast.Module) -> tuple[WrittenInput, ...]:
    """What `ref_kernel` writes to."""
    reference = function_of(tree, "ref_kernel")
    return written_inputs(reference) if reference else ()


def _listed(written: Iterable[WrittenInput]) -> str:
    return " and ".join(each.name for each in written)


def _check_name(tree: ast.Module) -> str:
    return free_names(["suite_check"], bound_names(tree))["suite_check"]


def _has_own_check(tree: ast.Module) -> bool:
    """Return whether outputs are right without being those of `ref_kernel`."""
    check = function_of(tree, "check_implementation")
    if check is None:
        return False
    return not any(isinstance(n, ast.Name) and n.id == "ref_kernel" for n in ast.walk(check))


def _settings(task: Mapping[str, Any], generate: ast.FunctionDef) -> list[ImportSetting]:
    found = []
    for key in ("benchmarks", "tests"):
        specs = task.get(key) or []
        if not isinstance(specs, list) or not all(isinstance(spec, dict) for spec in specs):
            raise NotRepresentableError(f"{key}: expected a list of settings, got {shown(specs)}")
        for spec in specs:
            values = {
                check_identifier(name, f"{key}: the key"): value
                for name, value in spec.items()
                if name != _SEED
            }
            for value in values.values():
                literal(value)
            check_keywords(generate, {*values, _SEED}, values)
            found.append(ImportSetting(values=values, timed=key == "benchmarks"))
    if not 0 < len(found) <= MOST_SETTINGS:
        raise NotRepresentableError(f"{len(found)} tests and benchmarks, expected 1 to 256")
    return found


def _task_file(
    text: str, tree: ast.Module, generate: ast.FunctionDef, group: SettingGroup
) -> tuple[str, list[dict[str, Any]]]:
    names = free_names(group.overridden, bound_names(tree))
    given = {key: literal(value) for key, value in group.constants.items()} | names
    if _SEED in keywords_of(generate):
        given[_SEED] = "random.getrandbits(31)"
    arguments = ", ".join(f"{name}={value}" for name, value in given.items())
    forward = "".join(
        f"        data = (*data[:{at}], {_FRESH[each.is_replaced].format(at)}, *data[{at + 1}:])\n"
        for each in _written(tree)
        if (at := each.position) is not None
    )
    added = f"""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, *data):
{forward}        return ref_kernel(data if len(data) > 1 else data[0])


def get_inputs():
    import random

    data = generate_input({arguments})
    return list(data) if isinstance(data, (tuple, list)) else [data]


def get_init_inputs():
    return []
"""
    if _has_own_check(tree):
        added += _SUITE_CHECK.format(name=_check_name(tree))
    constants = {names[key]: value for key, value in group.overridden.items()}
    renamed = {**names, "held_out": "held_out"}
    workloads = [{renamed[key]: value for key, value in one.items()} for one in group.workloads]
    return extended(text, constants, added), workloads


def _description(task: Mapping[str, Any]) -> str:
    description = task["description"]
    return printable(description)[:_LONGEST_DESCRIPTION] if isinstance(description, str) else ""


def _notes(task: Mapping[str, Any], tree: ast.Module) -> tuple[str, ...]:
    notes = []
    if "check_implementation" in bound_names(tree) and not _has_own_check(tree):
        notes.append("check_implementation: outputs are compared with those of ref_kernel")
    if task.get("ranking_by") == "last":
        notes.append("ranking_by last: every workload counts")
    written = _written(tree)
    if written:
        notes.append(f"ref_kernel writes into {_listed(written)}: kernels return a new tensor")
    if copied := [each for each in written if not each.is_replaced]:
        notes.append(f"times of ref_kernel hold a copy of {_listed(copied)}")
    return tuple(notes)
