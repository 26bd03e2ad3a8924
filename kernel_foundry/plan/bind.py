"""Plan + kernels + shapes + configuration + device → flat launch sequence.

Native code replays the sequence, which is data.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernel_foundry.closest_name import likely
from kernel_foundry.languages import language_named
from kernel_foundry.plan.configuration import Configuration, constants
from kernel_foundry.plan.errors import bind_error, limit_error, short
from kernel_foundry.plan.expression import table_value
from kernel_foundry.plan.interpreter import Interpreter, constant_values
from kernel_foundry.plan.names import NameTable, ScalarName, TensorName
from kernel_foundry.plan.recorder import Recorder
from kernel_foundry.plan.sequence import LaunchSequence
from kernel_foundry.plan.signature import KernelSignature
from kernel_foundry.plan.tree import Plan, PlanFunction
from kernel_foundry.plan.values import DeviceLimits, Value


def bind(
    plan: Plan,
    signatures: tuple[KernelSignature, ...],
    *,
    names: NameTable,
    configuration: Configuration,
    device: DeviceLimits,
    language: str,
    library_ops: tuple[str, ...] = (),
) -> LaunchSequence:
    """Interpret `prepare` and `launch` and return the flat sequence.

    Args:
        plan: The parsed plan; may be hostile.
        signatures: The device code's kernels, from `kernels`.
        names: The workload's name table.
        configuration: A value for every TUNE name.
        device: What the plan may ask and what bounds it.
        language: Name of the device code's language.
        library_ops: Names of the library calls that the task allows; see `LIBRARY_OPS`.

    Raises:
        NotMeant: When WHERE or `require` says so.
        PlanError: When the plan does not fit, with the line where it has one.
        ValueError: there is no such language.
    """
    record = language_named(language)
    try:
        const = constants(plan, names, configuration, device)
        shared: dict[str, Value] = {**constant_values(plan), **configuration, **const}
        recorder = Recorder(
            signatures,
            device,
            record,
            outputs=tuple(output.name for output in names.outputs),
            library_ops=library_ops,
        )
        interpreter = Interpreter(
            plan, shared=shared, names=names, device=device, recorder=recorder
        )
        prepared: dict[str, Value] = {}
        if plan.prepare is not None:
            arguments = _prepare_arguments(plan.prepare, names)
            prepared = interpreter.run_prepare(plan.prepare, arguments)
        recorder.end_prepare()
        interpreter.run(plan.launch, _launch_arguments(plan.launch, names, prepared))
        return recorder.finish()
    except RecursionError:
        raise limit_error("helpers and expressions are nested too deeply") from None


def _prepare_arguments(prepare: PlanFunction, names: NameTable) -> dict[str, Value]:
    arguments: dict[str, Value] = {}
    for name in prepare.parameters:
        entry = _entry(prepare, name, names)
        if isinstance(entry, TensorName) and entry.role not in ("parameter", "buffer"):
            raise bind_error(
                f"prepare cannot have the parameter {short(name)!r}: it runs once for each set of "
                f"weights, before there is an {entry.role}; it takes parameters, buffers and "
                "scalars",
                prepare.line,
            )
        arguments[name] = table_value(entry)
    return arguments


def _launch_arguments(
    launch: PlanFunction, names: NameTable, prepared: Mapping[str, Value]
) -> dict[str, Value]:
    arguments: dict[str, Value] = {}
    for name in launch.parameters:
        if name not in prepared:
            arguments[name] = table_value(_entry(launch, name, names))
        elif names.lookup(name) is not None:
            raise bind_error(
                f"launch has the parameter {short(name)!r}, which prepare assigns and the task has "
                "too: choose another name in prepare",
                launch.line,
            )
        else:
            arguments[name] = prepared[name]
    return arguments


def _entry(function: PlanFunction, name: str, names: NameTable) -> TensorName | ScalarName:
    entry = names.lookup(name)
    if entry is None:
        meant = short(likely(name, names.all_names), 600)
        raise bind_error(
            f"{function.name} has the parameter {short(name)!r}, which the task does not have"
            f"{meant}",
            function.line,
        )
    return entry
