"""Plan + kernels + shapes + configuration + device → flat launch sequence.

Knows nothing of a driver: the sequence is data that native code replays.
"""

from __future__ import annotations

from kernel_foundry.plan.configuration import Configuration, evaluate_constants
from kernel_foundry.plan.errors import bind_error, limit_error, short
from kernel_foundry.plan.expression import table_value
from kernel_foundry.plan.interpreter import Interpreter, constant_values
from kernel_foundry.plan.names import NameTable
from kernel_foundry.plan.recorder import Recorder
from kernel_foundry.plan.sequence import LaunchSequence
from kernel_foundry.plan.signature import KernelSignature
from kernel_foundry.plan.tree import Plan
from kernel_foundry.plan.values import DeviceLimits, Value


def bind(
    plan: Plan,
    signatures: tuple[KernelSignature, ...],
    *,
    names: NameTable,
    configuration: Configuration,
    device: DeviceLimits,
    language: str,
) -> LaunchSequence:
    """Interpret `launch` and return the flat sequence.

    Args:
        plan: The parsed plan; may be hostile.
        signatures: The device code's kernels, from `kernels`.
        names: The workload's name table.
        configuration: A value for every TUNE name.
        device: What the plan may ask and what bounds it.
        language: "sycl" or "cuda".

    Raises:
        NotMeant: When WHERE or `require` says so.
        PlanError: When the plan does not fit, with the line where it has one.
    """
    if language not in ("sycl", "cuda"):
        raise ValueError(f"language {language!r} is neither sycl nor cuda")
    try:
        const = evaluate_constants(plan, names, configuration, device, decide_all=True)
        shared: dict[str, Value] = {**constant_values(plan), **configuration, **const}
        recorder = Recorder(signatures, device, language)
        interpreter = Interpreter(
            plan, shared=shared, names=names, device=device, recorder=recorder
        )
        interpreter.run(plan.launch, _launch_arguments(plan, names))
        recorder.check_outputs(tuple(output.name for output in names.outputs))
        return recorder.finish()
    except RecursionError:
        raise limit_error("helpers and expressions are nested too deeply") from None


def _launch_arguments(plan: Plan, names: NameTable) -> dict[str, Value]:
    arguments: dict[str, Value] = {}
    for name in plan.launch.parameters:
        entry = names.lookup(name)
        if entry is None:
            known = ", ".join(names.all_names)
            raise bind_error(
                f"launch has the parameter {short(name)!r}, which the task does not have; it has "
                f"{short(known, 600)}",
                plan.launch.line,
            )
        arguments[name] = table_value(entry)
    return arguments
