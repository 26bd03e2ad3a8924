"""Checks that a locked process's message can be an answer to its request, before anybody uses it.

A process that met a candidate may send anything. The channel bounds the message's size, and the
dataclasses have types; the checks here are of counts, of ranges, and of references between request
and answer. Whether times and outputs are true is checked elsewhere
(`pipeline/timing/time_checks.py`, the judge).
"""

import dataclasses
import math
from collections.abc import Iterable
from functools import singledispatch
from typing import Any, Final

from evaluator_svc.behaviour import Scope
from evaluator_svc.messages.builder import CompileReply, EnumerateReply, ReadCandidateReply
from evaluator_svc.messages.draw import OUTPUT_SLOTS
from evaluator_svc.messages.foreign import (
    ForeignChanges,
    ForeignKept,
    ForeignLoaded,
    ForeignTimes,
)
from evaluator_svc.messages.inspector import InspectReply
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.object_report import MOST_UPDATES
from evaluator_svc.messages.runner import (
    BindReply,
    BoundWorkload,
    LoadReply,
    PoolReady,
    RunReply,
    StepTimes,
    TimeReply,
    WithoutKernels,
)
from evaluator_svc.policy.number_formats import FLOAT64, INT8, NARROW_FORMATS, ROUGH_TANH
from evaluator_svc.policy.object_rules import OBJECT_RULES
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding

_NO_FAILURE: Final = (EvaluationOutcome.PASSED, EvaluationOutcome.BUILT)
_MOST: Final = 1 << 53
"""Largest count: beyond it a number is not exact in every format."""
_MOST_CALLS: Final = 1 << 24
"""Most calls of one measurement: more than the shortest kernel makes in the time that it has."""
_MOST_FINDINGS: Final = 64
_MESSAGE_CHARACTERS: Final = 4000
_NAME_CHARACTERS: Final = 200
_MOST_EVIDENCE: Final = 64
_MOST_REASONS: Final = 32
_MOST_KERNELS: Final = 4096
"""Most kernels of one unit; a library of templates may leave many."""
_OBJECT_RULES: Final = {rule.id for rule in OBJECT_RULES}
_OPERANDS: Final = {*NARROW_FORMATS, INT8, FLOAT64}
"""Formats of the operands of matrix units."""
_OBJECT_BLOBS: Final = 2
"""Most blobs beside a `CompileReply`: object code and assembly."""


class ImplausibleError(Exception):
    """An answer that no honest process sends; the message says why."""


def check_answer(request: Any, answer: Any, *, blob_count: int) -> None:
    """Check that `answer` can be an answer to `request`.

    Args:
        request: The request.
        answer: A message of a type that was expected.
        blob_count: Blobs beside it.

    Raises:
        ImplausibleError: it cannot be one.
    """
    _require(blob_count <= (_OBJECT_BLOBS if isinstance(answer, CompileReply) else 0), "blobs")
    _check(answer, request)


def bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings of a process, cut to the limits of all findings."""
    return tuple(
        dataclasses.replace(
            finding,
            message=_text(finding.message),
            # No source has so many lines, and no message so large a number.
            line=None if finding.line is None or not 0 < finding.line <= _MOST else finding.line,
            hint=_text(finding.hint),
            rule=_name(finding.rule),
            evidence=tuple(
                dataclasses.replace(figure, name=_name(figure.name))
                for figure in finding.evidence[:_MOST_EVIDENCE]
            ),
        )
        for finding in list(findings)[:_MOST_FINDINGS]
    )


def _text(said: str) -> str:
    """Text without characters that stores refuse and terminals obey."""
    kept = said[:_MESSAGE_CHARACTERS]
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in kept)


def _name(said: str) -> str:
    return _text(said[:_NAME_CHARACTERS])


@singledispatch
def _check(answer: Any, request: Any) -> None:
    """Check nothing: the type is enough for messages without a check of their own."""


@_check.register
def _candidate_failed(answer: CandidateFailure, _request: Any) -> None:
    _require(answer.outcome not in _NO_FAILURE, f"a failure called {answer.outcome.value}")


@_check.register
def _parsed(answer: ReadCandidateReply, request: Any) -> None:
    _durations(answer.parse_ms, answer.policy_ms)
    units = answer.unit_of_workload
    _require(len(units) == len(request.workloads), "units for other workloads")
    _require(set(units) == set(range(len(answer.units))), "unknown unit")
    optional = {names.workload for names in request.workloads if names.is_optional}
    _require(set(answer.left_out) <= optional, "workloads that may not be left out")


@_check.register
def _compiled(answer: CompileReply, _request: Any) -> None:
    _durations(answer.build_ns)


@_check.register
def _inspected(answer: InspectReply, _request: Any) -> None:
    report = answer.report
    _require({f.rule for f in report.findings} <= _OBJECT_RULES, "findings of other rules")
    numbers, kernels = report.numbers, report.kernels
    _require(set(numbers.formats) <= set(NARROW_FORMATS), "unknown format")
    _require(set(numbers.matrix_formats) <= _OPERANDS, "unknown format")
    _require(set(numbers.rough_functions) <= {ROUGH_TANH}, "unknown function")
    _counts(numbers.products_of_a_step, kernels.pass_count, kernels.strided_line or 0)
    weights = (kernels.contiguous_weight, kernels.strided_weight, kernels.uniform_weight)
    _amounts(*weights, kernels.vector_weight, what="invalid weight")
    for scopes in (kernels.group_scopes, kernels.barrier_scopes):
        _require(len(scopes) <= len(Scope), "scopes that repeat")
    _require(len(report.updates) <= MOST_UPDATES, f"{len(report.updates)} updates")
    for update in report.updates:
        _require(update.kernel.isidentifier(), "a name")
        _require(set(update.axes) <= {0, 1, 2}, "unknown dimension")
        _counts(len(update.kernel), update.line or 0)
    _require(len(report.resources) <= _MOST_KERNELS, f"{len(report.resources)} kernels")
    for taken in report.resources:
        _require(len(taken.kernel) <= _MESSAGE_CHARACTERS and taken.kernel.isprintable(), "a name")
        _counts(taken.registers, taken.shared_bytes, taken.local_bytes, taken.spill_bytes)


@_check.register
def _bound(answer: BindReply, _request: Any) -> None:
    for workload in answer.workloads:
        _bound_workload(workload)


@_check.register
def _loaded(answer: LoadReply, request: Any) -> None:
    _durations(answer.load_ms, answer.bind_ms)
    bound = {workload.workload for workload in answer.workloads}
    asked = [n.workload for n in request.workloads if n.workload in bound or not n.is_optional]
    _require([w.workload for w in answer.workloads] == asked, "other workloads")
    _require(len(answer.runs) == len(request.runs), "other runs")
    _durations(*(ran.run_ns for ran in answer.runs))
    known = {name for unit in request.kernels for name in unit}
    for workload in answer.workloads:
        _bound_workload(workload)
        named = {*workload.kernels, *filter(None, [workload.main_kernel])}
        _require(named <= known, "unknown kernel")


@_check.register
def _ran(answer: RunReply, _request: Any) -> None:
    _durations(answer.run_ns)


@_check.register
def _without_kernels(answer: WithoutKernels, _request: Any) -> None:
    _counts(answer.choice_count - 1)


@_check.register
def _pool_ready(answer: PoolReady, _request: Any) -> None:
    _counts(answer.set_count - 1, answer.pool_bytes)


@_check.register
def _timed(answer: TimeReply, request: Any) -> None:
    # `time_checks.py` checks the samples themselves: bad ones are the candidate's failure.
    count = len(answer.samples_ns)
    _require(count <= request.settings.max_samples, f"{count} samples")
    for others in (answer.device_ns, answer.host_ns, answer.prepare_ns):
        _require(len(others) <= count, f"{len(others)} times beside {count} samples")
        _durations(*others)
    _counts(answer.warmup_count, answer.discarded_count, answer.guest_calls)
    # The judge counts them again, one by one.
    _require(max(answer.warmup_count, answer.discarded_count) <= _MOST_CALLS, "too many calls")
    _require(len(answer.kept) <= OUTPUT_SLOTS, "too many outputs kept")
    slots = [kept.slot for kept in answer.kept]
    _require(slots == list(range(len(slots))), "outputs kept in other slots")
    _counts(*(kept.seed for kept in answer.kept))
    _clocks(answer, count)


@_check.register
def _step_times(answer: StepTimes, request: Any) -> None:
    _durations(answer.own_ns, answer.library_ns)
    _counts(answer.call_count - 1)
    named = [time.kernel for time in answer.kernel_times]
    _require(len(set(named)) == len(named), "a kernel that comes twice")
    _require(set(named) <= set(request.kernels), "unknown kernel")
    for time in answer.kernel_times:
        _counts(time.launches - 1)
        _durations(time.median_ns)


@_check.register
def _enumerated(answer: EnumerateReply, request: Any) -> None:
    _require(len(answer.configurations) <= request.most, "too many configurations")


@_check.register
def _foreign_loaded(answer: ForeignLoaded, _request: Any) -> None:
    _durations(answer.load_ms)


@_check.register
def _foreign_timed(answer: ForeignTimes, request: Any) -> None:
    _require(len(answer.samples_ns) == request.call_count, "another number of samples")
    for times in (answer.samples_ns, answer.device_ns, answer.host_ns):
        _require(len(times) in (0, request.call_count), "another number of times")
        _durations(*times)


@_check.register
def _foreign_kept(answer: ForeignKept, request: Any) -> None:
    axes = [sorted(order) for order in answer.orders]
    _require(axes == [list(range(rank)) for rank in request.ranks], "an order of other axes")


@_check.register
def _foreign_changes(answer: ForeignChanges, _request: Any) -> None:
    for names in (answer.replaced, answer.threads):
        _require(len(names) <= _MOST_FINDINGS, "too many names")
        _require(all(len(n) <= _NAME_CHARACTERS and n.isprintable() for n in names), "a name")


def _clocks(answer: TimeReply, sample_count: int) -> None:
    # A block may be one of calls that were discarded.
    _require(len(answer.clocks) <= sample_count + answer.discarded_count + 1, "too many clocks")
    for block in answer.clocks:
        mhz = (block.compute_mhz_before, block.compute_mhz_after, block.memory_mhz)
        _counts(block.sample_count, *mhz)
        _require(len(block.throttle_reasons) <= _MOST_REASONS, "too many reasons")
        odd = [
            r for r in block.throttle_reasons if len(r) > _NAME_CHARACTERS or not r.isprintable()
        ]
        _require(not odd, "invalid reason")


def _bound_workload(workload: BoundWorkload) -> None:
    _counts(
        workload.launch_count, workload.scratch_count, workload.scratch_bytes,
        workload.group_count, workload.group_size, workload.library_call_count,
        workload.prepared_bytes, workload.result_bytes, workload.main_shared_bytes,
        workload.prepare_traffic_bytes, workload.prepared_count,
        *(count for grid in workload.grids for count in grid.groups),
    )  # fmt: skip


def _counts(*values: int) -> None:
    _require(all(0 <= value <= _MOST for value in values), "a count out of range")


def _durations(*values: float) -> None:
    _amounts(*values, what="invalid time")


def _amounts(*values: float, what: str) -> None:
    _require(all(math.isfinite(v) and v >= 0 for v in values), what)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ImplausibleError(what)
