"""What must hold for a request before anything is paid.

Values that the database cannot store are rejected, and so are malformed admissions: prompts and
recipes read their names, literals and graph.
"""

from typing import Final

from kernel_foundry.domain.admission import Admission, WorkloadAdmission
from kernel_foundry.domain.material import material_fault
from kernel_foundry.domain.name import check_name
from kernel_foundry.domain.request import ProposalOutcome, ProposalRequest
from kernel_foundry.domain.steering import LONGEST_HINT
from kernel_foundry.domain.task_limits import check_task
from kernel_foundry.domain.trick import LONGEST_TRICK, MOST_TRICKS
from kernel_foundry.domain.verdict_limits import check_elite, check_verdict
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.from_admission import name_table

_LONGEST_NAME: Final = 200
"""Characters of a run's and of a model's name that the store's columns hold."""

_LARGEST_NUMBER: Final = 2**31 - 1
"""That every database's integer columns hold."""

_MOST_NODES: Final = 20_000
"""Of a graph; the largest models of today have some thousands."""

_LONGEST_ARGUMENT: Final = 65_536
"""Characters of one argument of a node, among them a list of names or sizes."""


def check_request(request: ProposalRequest) -> None:
    """Refuse a request that no prompt can be made of, or whose proposal could not be recorded.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    check_run(request.run)
    check_name(request.task.name, "task.name")
    check_task(request.task)
    check_admission(request.admission)
    for model in request.models:
        _check_name(model, "models")
    fault = material_fault(request.materials)
    if fault:
        raise InvalidArgumentError(fault, field="materials")
    if len(request.selection.user_hint) > LONGEST_HINT:
        raise InvalidArgumentError(
            f"a hint of {len(request.selection.user_hint)} characters, expected at most "
            f"{LONGEST_HINT}",
            field="selection.user_hint",
        )
    tricks = request.selection.banned_tricks
    if len(tricks) > MOST_TRICKS or any(len(trick) > LONGEST_TRICK for trick in tricks):
        raise InvalidArgumentError(
            f"expected at most {MOST_TRICKS} banned tricks of at most {LONGEST_TRICK} characters",
            field="selection.banned_tricks",
        )
    parent = request.selection.parent
    if parent is not None:
        check_elite(parent, "selection.parent")
    for inspiration in request.selection.inspirations:
        check_elite(inspiration, "selection.inspirations")
    selection = request.selection.sequence
    if not 0 <= selection <= _LARGEST_NUMBER:
        raise InvalidArgumentError(
            f"selection {selection}: expected 0 to {_LARGEST_NUMBER}", field="selection.sequence"
        )


def check_admission(admission: Admission) -> None:
    """Refuse an admission that no evaluator makes; raises as `check_request`."""
    if not admission.workloads:
        raise InvalidArgumentError(
            "admission.workloads: none; expected those of an admitted task",
            field="admission.workloads",
        )
    for index, workload in enumerate(admission.workloads):
        fault = _fault(workload)
        if fault:
            field = f"admission.workloads[{index}]"
            raise InvalidArgumentError(f"{field}: {fault}", field=field)


def _fault(workload: WorkloadAdmission) -> str:
    try:
        name_table(workload.tensors, workload.scalars)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        return f"names that no plan can use: {error}"
    if len(workload.graph) > _MOST_NODES:
        return f"a graph of {len(workload.graph)} nodes, expected at most {_MOST_NODES}"
    known: set[str] = set()
    for node in workload.graph:
        longest = max(map(len, (node.name, node.op, *node.arguments)))
        if longest > _LONGEST_ARGUMENT:
            most = _LONGEST_ARGUMENT
            return f"a node with a text of {longest} characters, expected at most {most}"
        lost = [a for a in node.arguments if a.startswith("%") and a[1:] not in known]
        if lost:
            return f"node {node.name} of the graph takes {lost[0]}, which no node before it is"
        known.add(node.name)
    ends = sum(node.op == "output" for node in workload.graph)
    return f"a graph with {ends} output nodes, expected one" if workload.graph and ends != 1 else ""


def check_outcome(outcome: ProposalOutcome) -> None:
    """Refuse a verdict that is none before anything is learnt; raises as `check_request`."""
    check_run(outcome.run)
    check_verdict(outcome.candidate, outcome.evaluation)


def check_run(run: str, field: str = "run") -> None:
    """Refuse a name that no run has; raises as `check_request`."""
    _check_name(run, field)


def _check_name(name: str, field: str) -> None:
    if len(name) > _LONGEST_NAME or "\0" in name:
        raise InvalidArgumentError(
            f"{field}: a name of {len(name)} characters, expected at most {_LONGEST_NAME} and none "
            "of them NUL",
            field=field,
        )
