"""Loads a candidate's object code on the device."""

from typing import Any

from evaluator_svc.runner.faults import fault
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind


def load_program(device: Any, code: bytes, kernels: tuple[str, ...]) -> Any:
    """Return the native program of one unit.

    Raises:
        CandidateFaultError: the device refuses the code.
    """
    import kernel_foundry_native as native

    try:
        return device.load(code=code, kernels=list(kernels))
    except native.NativeError as error:
        raise fault(
            EvaluationOutcome.LAUNCH_ERROR,
            FindingKind.LAUNCH_RESOURCE,
            f"the device refuses the object code: {error}",
        ) from error
