"""The time limit of `prepare`, and the finding for a plan that exceeds it.

A plan prepares its weights once for many calls. `prepare` is timed before each cold call, and its
time is not part of a call as long as it only moves bytes (a transposition, padding, a split into
narrow parts). Beyond the limit it does work of the operator, and every call is charged with it.
"""

from evaluator_svc.languages import backend_of
from evaluator_svc.messages.runner import BoundWorkload
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import WorkloadResult
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.language import Language


def layout_limit_ns(bound: BoundWorkload, language: Language, peaks: Peaks) -> float:
    """Return the most time that a change of layout takes; beyond it `prepare` is charged."""
    backend = backend_of(language)
    # Not of launches: a plan may have thousands.
    launches_ns = backend.layout_launches * bound.prepared_count * peaks.launch_ns
    return backend.layout_traffic_multiple * _moving_ns(bound, peaks) + launches_ns


def prepare_findings(
    result: WorkloadResult, bound: BoundWorkload, peaks: Peaks
) -> tuple[Finding, ...]:
    """Return a finding for a `prepare` that every call is charged with; empty for layout."""
    if not result.charged_prepare_ns:
        return ()
    moving_ns = _moving_ns(bound, peaks)
    return (
        Finding(
            kind=FindingKind.PREPARE_TIME,
            severity=Severity.WARNING,
            message=f"{result.workload}: prepare counted in: it takes "
            f"{1e-6 * result.charged_prepare_ns:.3g} ms where moving its bytes takes "
            f"{1e-6 * moving_ns:.3g} ms, so it does work of the operator and every call is "
            "charged with it",
            evidence=(
                Figure(name="prepare_ns", value=result.charged_prepare_ns),
                Figure(name="prepare_limit_ns", value=result.prepare_limit_ns or 0.0),
                Figure(name="moving_ns", value=moving_ns),
            ),
            hint="let prepare change layout only (transpose, pad, split, convert), and compute in "
            "launch what the operator computes",
        ),
    )


def _moving_ns(bound: BoundWorkload, peaks: Peaks) -> float:
    return 1e9 * bound.prepare_traffic_bytes / peaks.bandwidth_bytes_per_second
