"""Checks of a run and of a cost before they are stored, whoever gives them."""

import math

from archive_svc.search.strategies import STRATEGIES
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.material import material_fault
from kernel_foundry.domain.mechanisms import MECHANISMS
from kernel_foundry.domain.name import check_name
from kernel_foundry.domain.operator_list import operators_fault
from kernel_foundry.domain.run_name import check_run_name
from kernel_foundry.domain.task_limits import check_task
from kernel_foundry.errors import InvalidArgumentError


def check_spec(spec: RunSpec) -> None:
    """Refuse a run whose name, task, strategy, mechanisms, materials or candidates are invalid.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    check_run_name(spec.name)
    check_name(spec.task.name, "task.name")
    check_task(spec.task)
    check_strategy(spec.strategy)
    for name in spec.without:
        if name not in MECHANISMS:
            raise InvalidArgumentError(
                f"without {name!r}: expected one of {', '.join(MECHANISMS)}", field="without"
            )
    fault = material_fault(spec.materials)
    if fault:
        raise InvalidArgumentError(fault, field="materials")
    fault = operators_fault(spec.operators)
    if fault:
        raise InvalidArgumentError(fault, field="operators")
    length = sum(len(source.device_code) + len(source.plan) for source in spec.first_candidates)
    if length > LONGEST_CANDIDATE:
        raise InvalidArgumentError(
            f"first candidates of {length} characters in all, expected at most {LONGEST_CANDIDATE}",
            field="first_candidates",
        )


def check_strategy(strategy: str) -> None:
    """Refuse an unknown strategy; raises as `check_spec`."""
    if strategy not in STRATEGIES:
        raise InvalidArgumentError(
            f"strategy {strategy!r}: expected one of {', '.join(STRATEGIES)}", field="strategy"
        )


def check_cost(cost_usd: float) -> None:
    """Refuse a cost that is negative or infinite, or not a number; raises as `check_spec`."""
    if not (math.isfinite(cost_usd) and cost_usd >= 0):
        raise InvalidArgumentError(f"cost_usd is {cost_usd}, expected >= 0", field="cost_usd")
