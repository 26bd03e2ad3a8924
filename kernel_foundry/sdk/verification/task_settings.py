"""Settings of a record's task that its reference alone does not determine, for people."""

from collections.abc import Iterator

from kernel_foundry.domain.task import Task
from kernel_foundry.plan import NO_LIBRARY
from kernel_foundry.sdk.verification.statement import Agreement, Statement


def unusual_settings(task: Task) -> Iterator[Statement]:
    """Yield a line for each setting that makes a task easier to pass, or another one."""
    for name, value in _settings(task):
        yield Statement(
            subject=f"task setting {name}", agreement=Agreement.NOT_COMPARABLE, recorded=value
        )


def _settings(task: Task) -> Iterator[tuple[str, str]]:
    if task.tolerance is not None:
        bounds = f"rtol {task.tolerance.rtol:g}, atol {task.tolerance.atol:g}"
        if task.tolerance.matched < 1.0:
            bounds += f", of {100 * task.tolerance.matched:g} % of the elements"
        yield "tolerance", f"{bounds}, by hand: none was derived from the reference"
    weights = [f"{w.weight:g} for {w.name}" for w in task.workloads if w.weight != 1.0]
    if weights:
        yield "weights of workloads", f"{', '.join(weights)}, by hand"
    if task.least_bits:
        yield "least_bits", f"{task.least_bits:g}, by hand"
    if task.check:
        alone = "" if task.compare else ", and nothing else tells which outputs are right"
        yield "check", f"{task.check}() of the reference's text looks at outputs{alone}"
    if task.admit_degenerate:
        yield "admit_degenerate", "trivial answers may pass this task"
    if task.constants:
        yield "constants", f"{', '.join(task.constants)}: inputs that never change"
    if not task.training:
        yield "training", "the module is in evaluation mode"
    if task.tf32:
        yield "tf32", "products may round their operands to TF32"
    if task.precision is not None:
        yield "precision", f"inputs and weights are cast to {task.precision.value}"
    if task.library_ops and task.library_ops != (NO_LIBRARY,):
        yield "library_ops", f"a candidate may call {', '.join(task.library_ops)}"
