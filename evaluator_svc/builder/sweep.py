"""Which configurations a sweep tries: the plan's search space, cut to size, in order.

Pure: plan and name tables in, configurations out.
"""

import random
import time
from collections.abc import Iterator
from typing import Final

from evaluator_svc.builder.read_candidate import plan_refused
from evaluator_svc.messages.builder import EnumerateReply, EnumerateRequest
from evaluator_svc.processes.binding import uses_library
from kernel_foundry.domain.sweep import Configuration
from kernel_foundry.plan.configuration import (
    chosen_values,
    default_configuration,
    is_meant,
    settings_of,
    space_size,
)
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.from_admission import device_limits, name_table
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.tree import Plan, TuneValue

_MOST_LOOKED_AT: Final = 200_000
"""Members of a space that are looked at; of a larger one a random choice."""
_SECONDS: Final = 5.0
"""For looking at them; what was found by then is what there is."""


def enumerate_configurations(request: EnumerateRequest) -> EnumerateReply:
    """Return the default (where it is meant), `order`, and an even choice of the others.

    Raises:
        CandidateRefusedError: the plan does not fit.
    """
    try:
        plan = parse(request.source.plan)
        chosen = _chosen(plan, request)
    except PlanError as error:
        raise plan_refused(error) from error
    return EnumerateReply(
        configurations=tuple(Configuration(settings=settings_of(values)) for values in chosen),
        uses_library=uses_library(plan),
    )


def _chosen(plan: Plan, request: EnumerateRequest) -> list[dict[str, TuneValue]]:
    # The first workload decides conditions on shapes; what another one refuses is a result.
    first = request.workloads[0]
    names = name_table(first.tensors, first.scalars)
    device = device_limits(request.device)
    deadline = time.monotonic() + _SECONDS
    chosen: dict[tuple[TuneValue, ...], dict[str, TuneValue]] = {}
    for values in _candidates(plan, request):
        if len(chosen) >= request.most or time.monotonic() > deadline:
            break
        key = tuple(values.values())
        if key not in chosen and is_meant(plan, values, names, device):
            chosen[key] = values
    # Nothing is meant: the default says why.
    return list(chosen.values()) or [default_configuration(plan)]


def _candidates(plan: Plan, request: EnumerateRequest) -> Iterator[dict[str, TuneValue]]:
    yield default_configuration(plan)
    for configuration in request.order:
        try:
            yield chosen_values(plan, configuration.settings)
        except PlanError:
            continue  # It comes from another candidate, whose values may be others.
    size = space_size(plan)
    # A fixed order that is nobody's: a good incumbent comes early, and a cut is an even choice.
    for index in random.Random(size).sample(range(size), min(size, _MOST_LOOKED_AT)):
        yield _member(plan, index)


def _member(plan: Plan, index: int) -> dict[str, TuneValue]:
    values = {}
    for parameter in plan.tune:
        index, position = divmod(index, len(parameter.values))
        values[parameter.name] = parameter.values[position]
    return values
