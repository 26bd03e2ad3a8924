"""robust-kbench: a folder a task, with a module, and settings for it in JSON.

A setting is one of the initial ones, one of the inputs' and one shared, which goes to both.
"""

import ast
import itertools
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from kernel_foundry.sdk.task_import.entry import ImportEntry, NotRepresentableError
from kernel_foundry.sdk.task_import.kernelbench import check_reference
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
from kernel_foundry.shown_value import shown

_MODULE: Final = "func_forward.py"
_SETTINGS: Final = "config_forward.json"
_BACKWARD: Final = "func_backward.py"
_BACKWARD_SETTINGS: Final = "config_backward.json"
_SAVED: Final = (
    "AutogradFunction: kernels get the inputs and the gradient of the result, and no saved tensors"
)
_PARTS: Final = ("init", "input", "shared")


def is_robust_kbench(files: SuiteFiles) -> bool:
    """Return whether a folder has such a module."""
    return bool(files.named(_MODULE) or files.named(_BACKWARD))


def read_robust_kbench(files: SuiteFiles) -> Iterator[ImportEntry]:
    """Return the entries of each folder: forward and backward, one for each group of settings."""
    for path in (*files.named(_MODULE), *files.named(_BACKWARD)):
        is_backward = PurePosixPath(path).name == _BACKWARD
        name = _name(files, path) + "_backward" * is_backward
        try:
            yield from _entries(files, path, name, is_backward=is_backward)
        except NotRepresentableError as error:
            yield ImportEntry(source=path, name=name, reason=str(error))


def _name(files: SuiteFiles, path: str) -> str:
    return "_".join(PurePosixPath(path).parts[-3:-1]) or files.name


def _entries(
    files: SuiteFiles, path: str, name: str, *, is_backward: bool
) -> Iterator[ImportEntry]:
    text = one_file(files, path)
    check_reference(text, path)
    call = _Call(parsed(text, path))
    config = _BACKWARD_SETTINGS if is_backward else _SETTINGS
    settings = [ImportSetting(values=call.flat(*one)) for one in _settings(files, path, config)]
    for number, group in enumerate(setting_groups(settings, splits=_may_change_weights), 1):
        yield ImportEntry(
            source=path if number == 1 else f"{path}, settings {number}",
            name=name if number == 1 else f"{name}_{number}",
            reference=call.text_for(text, group),
            settings={
                **({"workloads": call.renamed(group)} if group.workloads else {}),
                **({"backward": True} if is_backward else {}),
            },
            notes=(_SAVED,) if is_backward else (),
        )


def _may_change_weights(name: str, value: object) -> bool:
    """Whether a setting may decide which parameters there are, as a flag of the constructor may."""
    return name.startswith("init ") and isinstance(value, bool)


def _settings(files: SuiteFiles, path: str, name: str) -> list[tuple[dict[str, Any], ...]]:
    """What each setting of a file gives, as (init, input, shared): the single ones first."""
    config = files.json(files.beside(path, name))
    if not isinstance(config, dict):
        raise NotRepresentableError(f"{name}: expected an object, got {shown(config)}")
    found: list[tuple[dict[str, Any], ...]] = []
    for kind in ("single", "multi"):
        if not any(key.startswith(f"{kind}_") for key in config):
            continue
        parts = [_part(config, f"{kind}_{part}_configs") for part in _PARTS]
        if len(parts[0]) * len(parts[1]) * len(parts[2]) + len(found) > MOST_SETTINGS:
            raise NotRepresentableError(f"{name}: more than {MOST_SETTINGS} settings")
        found += itertools.product(*parts)
    if not found:
        raise NotRepresentableError(f"{name}: no settings")
    return found


def _part(config: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = config.get(key) or [{}]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise NotRepresentableError(f"{key}: expected a list of objects, got {shown(value)}")
    for name in itertools.chain(*value):
        check_identifier(name, f"{key}: the key")
    return value


class _Call:
    """How a module's `Model` and `get_inputs` are called with the values of settings."""

    def __init__(self, tree: ast.Module) -> None:
        get_inputs = function_of(tree, "get_inputs")
        models = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"]
        if get_inputs is None or not models:
            raise NotRepresentableError("Model or get_inputs is not a definition of the module")
        self._get_inputs = get_inputs
        body = ast.Module(body=models[-1].body, type_ignores=[])
        self._init = function_of(body, "__init__")
        self._taken = bound_names(tree)

    def flat(
        self, init: Mapping[str, Any], inputs: Mapping[str, Any], shared: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return one mapping with all values; a name that differs in both has a prefix."""
        to_init = keywords_of(self._init) if self._init else set()
        to_inputs = keywords_of(self._get_inputs)
        for name in shared:
            if name not in to_init | to_inputs:
                raise NotRepresentableError(f"neither Model nor get_inputs takes {name}")
        init = {**init, **{k: v for k, v in shared.items() if k in to_init}}
        inputs = {**inputs, **{k: v for k, v in shared.items() if k in to_inputs}}
        check_keywords(self._get_inputs, inputs, inputs)
        if self._init:
            check_keywords(self._init, init, init)
            if self._init.args.kwonlyargs:
                raise NotRepresentableError("Model takes arguments by keyword alone")
        elif init:
            raise NotRepresentableError("Model has no __init__ to take settings")
        for value in (*init.values(), *inputs.values()):
            literal(value)  # what no text can hold ends this entry alone
        return {f"init {k}": v for k, v in init.items()} | {
            f"input {k}": v for k, v in inputs.items()
        }

    def text_for(self, text: str, group: SettingGroup) -> str:
        """Return the task file's text for a group of settings."""
        names = self._names(group)
        constants = {names[key]: value for key, value in group.overridden.items()}
        given = {key: literal(value) for key, value in group.constants.items()} | names
        original = free_names(["suite_get_inputs"], self._taken)["suite_get_inputs"]
        added = f"""
{original} = get_inputs


def get_inputs():
    return {original}({_keywords(given, "input")})


def get_init_inputs():
    import inspect

    bound = inspect.signature(Model).bind({_keywords(given, "init")})
    bound.apply_defaults()
    return list(bound.args)
"""
        return extended(text, constants, added)

    def renamed(self, group: SettingGroup) -> list[dict[str, Any]]:
        """Return the workloads of a group by the names of its constants."""
        names = {**self._names(group), "held_out": "held_out"}
        return [{names[key]: value for key, value in one.items()} for one in group.workloads]

    def _names(self, group: SettingGroup) -> dict[str, str]:
        """A constant's name in the file, one for both parts where they always agree."""
        every = [*group.workloads, group.overridden]
        labels = {}
        for key in group.overridden:
            part, name = key.split()
            init, inputs = f"init {name}", f"input {name}"
            agree = all(
                one.get(init, one.get(inputs)) == one.get(inputs, one.get(init)) for one in every
            )
            labels[key] = name if agree else f"{part}_{name}"
        if len({(label, key.split()[1]) for key, label in labels.items()}) > len(
            set(labels.values())
        ):
            raise NotRepresentableError("two settings would have one name")
        free = free_names(sorted(set(labels.values())), self._taken)
        return {key: free[label] for key, label in labels.items()}


def _keywords(given: Mapping[str, str], part: str) -> str:
    chosen = {key.split()[1]: text for key, text in given.items() if key.split()[0] == part}
    return ", ".join(f"{name}={text}" for name, text in chosen.items())
