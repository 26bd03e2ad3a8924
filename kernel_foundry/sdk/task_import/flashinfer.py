"""FlashInfer Trace and SOL-ExecBench: a definition with axes, tensors and a function `run`.

The workloads of a definition lie in JSON Lines beside it (`workload.jsonl`), or in the tree
`workloads/` beside `definitions/`.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from kernel_foundry.domain.task import Tolerance
from kernel_foundry.domain.task_limits import LEAST_MATCHED
from kernel_foundry.printable import printable
from kernel_foundry.sdk.task_import.definition import Definition, read_definition
from kernel_foundry.sdk.task_import.entry import ImportEntry, NotRepresentableError
from kernel_foundry.sdk.task_import.settings import (
    MOST_SETTINGS,
    ImportSetting,
    SettingGroup,
    is_size,
    literal,
    setting_groups,
    tolerance_setting,
)
from kernel_foundry.sdk.task_import.source_text import (
    bound_names,
    extended,
    free_names,
    parsed,
)
from kernel_foundry.sdk.task_import.suite_files import SuiteFiles, plain_json
from kernel_foundry.shown_value import shown

_DEFINITION: Final = "definition.json"
_WORKLOADS: Final = "workload.jsonl"
_MATCHED: Final = "required_matched_ratio"
_LONGEST_DESCRIPTION: Final = 16_384


def is_flashinfer(files: SuiteFiles) -> bool:
    """Return whether there is a definition."""
    return bool(_definitions(files))


def read_flashinfer(files: SuiteFiles) -> Iterator[ImportEntry]:
    """Return an entry for each group of a definition's workloads, and for each one left out."""
    for path in _definitions(files):
        name = PurePosixPath(path).stem
        if name == "definition":
            name = PurePosixPath(path).parent.name or files.name
        try:
            yield from _entries(files, path, name)
        except NotRepresentableError as error:
            yield ImportEntry(source=path, name=name, reason=str(error))


def _definitions(files: SuiteFiles) -> list[str]:
    return [
        path
        for path in files.ending(".json")
        if PurePosixPath(path).name == _DEFINITION or "definitions" in path.split("/")[:-1]
    ]


def _entries(files: SuiteFiles, path: str, name: str) -> Iterator[ImportEntry]:
    content = files.json(path)
    beside = files.beside(path, "reference.py")
    if isinstance(content, dict) and not content.get("reference") and files.has(beside):
        content["reference"] = files.text(beside)
    definition = read_definition(content)
    if isinstance(content.get("name"), str) and content["name"]:
        name = content["name"]
    settings: list[ImportSetting] = []
    notes: tuple[str, ...] = ()
    for where, workload in _workloads(files, path):
        try:
            values = _values(definition, workload)
            tolerance, said = _tolerance(workload.get("tolerance"))
            settings.append(ImportSetting(values=values, tolerance=tolerance))
            notes += said
        except NotRepresentableError as error:
            yield ImportEntry(source=where, name=f"{name}_{where}", reason=str(error))
    if not 0 < len(settings) <= MOST_SETTINGS:
        raise NotRepresentableError(f"{len(settings)} workloads, expected 1 to {MOST_SETTINGS}")
    notes = tuple(dict.fromkeys(notes))
    sidecar: dict[str, Any] = {}
    if content.get("constraints"):
        notes += ("constraints: the workloads alone keep to them",)
    if isinstance(content.get("description"), str) and content["description"]:
        sidecar["instructions"] = printable(content["description"])[:_LONGEST_DESCRIPTION]
    for number, group in enumerate(setting_groups(settings), 1):
        yield ImportEntry(
            source=path if number == 1 else f"{path}, workloads {number}",
            name=name if number == 1 else f"{name}_{number}",
            reference=_text(definition, group),
            settings={**_workload_settings(definition, group), **sidecar},
            notes=(*notes, *_unkept_tolerance(group, settings)),
        )


def _workloads(files: SuiteFiles, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if PurePosixPath(path).name == _DEFINITION:
        listed = files.beside(path, _WORKLOADS)
    else:
        parts = list(PurePosixPath(path).with_suffix(".jsonl").parts)
        parts[len(parts) - 1 - parts[::-1].index("definitions")] = "workloads"
        listed = "/".join(parts)
    for number, line in files.lines(listed):
        where = f"{listed}, line {number}"
        record = plain_json(line, where)
        workload = record.get("workload", record) if isinstance(record, dict) else record
        if not isinstance(workload, dict):
            raise NotRepresentableError(f"{where}: no workload: {shown(record)}")
        yield where, workload


def _values(definition: Definition, workload: Mapping[str, Any]) -> dict[str, Any]:
    """Axes, scalars, and how each input is made: the values of a setting."""
    axes, inputs = workload.get("axes") or {}, workload.get("inputs") or {}
    if not isinstance(axes, dict) or not isinstance(inputs, dict):
        raise NotRepresentableError("axes or inputs is not an object")
    values: dict[str, Any] = {}
    for name in definition.sizes:
        if not is_size(axes.get(name)):
            raise NotRepresentableError(f"axis {name}: no size: {shown(axes.get(name))}")
        values[f"axis {name}"] = axes[name]
    for name in definition.inputs:
        made = inputs.get(name) or {"type": "random"}
        kind = made.get("type") if isinstance(made, dict) else None
        if kind == "scalar":
            values[f"scalar {name}"] = _scalar(definition.inputs[name].dtype, made.get("value"))
        elif kind == "custom" and definition.entry_point:
            values[f"kind {name}"] = "custom"
        elif kind == "random":
            definition.inputs[name].check_random()
            values[f"kind {name}"] = "random"
        else:
            raise NotRepresentableError(f"input {name}: values of type {shown(kind)}")
    return values


def _scalar(dtype: str, value: Any) -> Any:
    """A number of the call: a flag or a float, which workloads may differ in, or else a text."""
    text = literal(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, bool) else text
    # A whole number that is not said to have a point is no size of ours.
    return float(value) if isinstance(value, float) or dtype.startswith("float") else text


def _tolerance(stated: Any) -> tuple[Tolerance | None, tuple[str, ...]]:
    """What a workload's outputs are held to, and what of it no task can have."""
    if stated is None:
        return None, ()
    given = stated if isinstance(stated, dict) else {}
    rtol, atol = given.get("max_rtol", -1), given.get("max_atol", -1)
    if not (_is_bound(rtol) and _is_bound(atol)):
        return None, ("tolerance: no max_rtol and max_atol below 1, derived at admission",)
    matched = given.get(_MATCHED, 1.0)
    unkept = [key for key in given if key not in ("max_rtol", "max_atol", _MATCHED)]
    if not (_is_number(matched) and LEAST_MATCHED <= matched <= 1):
        unkept.append(_MATCHED)
        matched = 1.0
    notes = tuple(f"tolerance: {printable(str(key))[:100]}" for key in unkept if given.get(key))
    return Tolerance(rtol=float(rtol), atol=float(atol), matched=float(matched)), notes


def _unkept_tolerance(group: SettingGroup, settings: list[ImportSetting]) -> tuple[str, ...]:
    is_stated = any(setting.tolerance for setting in settings)
    if group.tolerance is not None or not is_stated:
        return ()
    return ("tolerance: not every workload states one, derived at admission",)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_bound(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


def _names(definition: Definition, group: SettingGroup) -> dict[str, str]:
    """What each constant that workloads override is called in the task file."""
    names = {f"axis {name}": size for name, size in definition.sizes.items()}
    scalars = [key.split()[1] for key in group.overridden if key.startswith("scalar ")]
    taken = bound_names(parsed(definition.reference, "reference"))
    taken |= {"made", *names.values(), *_parameters(definition)}
    free = free_names((f"{scalar}_value" for scalar in scalars), taken)
    return names | {f"scalar {scalar}": free[f"{scalar}_value"] for scalar in scalars}


def _workload_settings(definition: Definition, group: SettingGroup) -> dict[str, Any]:
    names = _names(definition, group)
    names |= {"held_out": "held_out", "tolerance": "tolerance"}
    listed = [{names[key]: value for key, value in one.items()} for one in group.workloads]
    settings: dict[str, Any] = {"workloads": listed} if listed else {}
    if group.tolerance is not None:
        settings["tolerance"] = tolerance_setting(group.tolerance)
    return settings


def _parameters(definition: Definition) -> list[str]:
    """Names of the inputs in `forward`, where `run` and `result` have a meaning."""
    used = {"self", "run", "result"}
    found = []
    for name in definition.inputs:
        while name in used:  # two inputs differ, but not from a changed one
            name += "_"  # noqa: PLW2901
        used.add(name)
        found.append(name)
    return found


def _text(definition: Definition, group: SettingGroup) -> str:
    names = _names(definition, group)
    given = {
        key: value if isinstance(value, str) else repr(value)
        for key, value in group.constants.items()
    } | {key: names[key] for key in group.overridden if key.startswith("scalar ")}
    made = []
    for name, tensor in definition.inputs.items():
        if f"scalar {name}" in given:
            made.append(given[f"scalar {name}"])
        elif group.constants[f"kind {name}"] == "custom":
            made.append(f'made["{name}"]')
        else:
            made.append(tensor.random())
    axes = [f'"{name}": {text}' for name, text in definition.axes.items()]
    scalars = [
        f'"{key.split()[1]}": {text}' for key, text in given.items() if key.startswith("scalar ")
    ]
    entry, alias = definition.entry_point, ""
    if entry == "get_inputs":  # ours has this name, too
        taken = bound_names(parsed(definition.reference, "reference")) | set(names.values())
        entry = free_names(["suite_get_inputs"], taken)["suite_get_inputs"]
        alias = f"{entry} = get_inputs\n\n"
    call = f"{entry}({{{', '.join([*axes, *scalars])}}}, torch.get_default_device())"
    custom = f"    made = {call}\n" if "custom" in group.constants.values() else ""
    arguments = ", ".join(_parameters(definition))
    values = "".join(f"        {text},\n" for text in made)
    outputs = ", ".join(f'result["{name}"]' for name in definition.outputs)
    added = f"""
{alias}import torch
from torch import nn


class Model(nn.Module):
    def forward(self, {arguments}):
        result = run({arguments})
        return ({outputs},) if isinstance(result, dict) else result


def get_inputs():
{custom}    return [
{values}    ]


def get_init_inputs():
    return []
"""
    constants = {names[key]: value for key, value in group.overridden.items()}
    return extended(definition.reference, constants, added)
