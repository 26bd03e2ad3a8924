"""`prepare` is layout: what takes longer is charged to every call, everywhere alike."""

import dataclasses

import pytest

from evaluator_svc.messages.runner import BoundWorkload
from evaluator_svc.pipeline.timing.prepare_limit import layout_limit_ns, prepare_findings
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import Baseline, WorkloadResult
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from tests.domain_values import timing_of

_PEAKS = Peaks(
    bandwidth_bytes_per_second=1e9,
    cache_bandwidth_bytes_per_second=1e10,
    flops_per_second=1e11,
    launch_ns=1e3,
    read_bandwidth_bytes_per_second=1e9,
)
_BOUND = BoundWorkload(
    workload="default",
    launch_count=1,
    scratch_count=0,
    scratch_bytes=0,
    group_count=1,
    group_size=1,
    kernels=("k",),
    prepared_bytes=10**6,
    prepare_traffic_bytes=2 * 10**6,
    prepared_count=1,
)


def _result(prepare_ns: float | None, limit_ns: float | None) -> WorkloadResult:
    return WorkloadResult(
        workload="default",
        timing=timing_of(1e6, half_width=0.1),
        baselines=(Baseline(name="eager", timing=timing_of(4e6, half_width=0.1)),),
        traffic_bound_ns=1e6,
        prepare_ns=prepare_ns,
        prepare_limit_ns=limit_ns,
    )


def test_the_limit_is_traffic_and_a_few_launches_of_each_tensor() -> None:
    assert layout_limit_ns(_BOUND, Language.CUDA, _PEAKS) == 8.0 * 2e6 + 4.0 * 1e3
    assert layout_limit_ns(_BOUND, Language.SYCL, _PEAKS) == 16.0 * 2e6 + 32.0 * 1e3


def test_many_launches_are_allowed_no_more() -> None:
    """Who launches a thousand times has a thousand launches to pay for."""
    many = dataclasses.replace(_BOUND, launch_count=4096)
    assert layout_limit_ns(many, Language.CUDA, _PEAKS) == layout_limit_ns(
        _BOUND, Language.CUDA, _PEAKS
    )


def test_layout_is_free_of_charge() -> None:
    result = _result(3e6, 3e6)
    assert result.charged_prepare_ns == 0.0
    assert result.speedup == 4.0
    assert result.speedup_prepared_once == 1.0
    assert prepare_findings(result, _BOUND, _PEAKS) == ()


def test_work_is_charged_to_every_call() -> None:
    result = _result(3e6, 2.9e6)
    assert result.call_bounds_ns == pytest.approx((3.9e6, 4e6, 4.1e6))
    assert result.speedup == 1.0
    assert result.speedup_eager == 1.0
    assert result.traffic_bound_share == 0.25
    lower, upper = result.speedup_interval or (0.0, 0.0)
    assert lower < 1.0 < upper
    (finding,) = prepare_findings(result, _BOUND, _PEAKS)
    assert finding.kind is FindingKind.PREPARE_TIME
    assert "takes 3 ms where moving its bytes takes 2 ms" in finding.message


@pytest.mark.parametrize("limit_ns", [None, 1e6])
def test_without_prepare_nothing_is_charged(limit_ns: float | None) -> None:
    assert _result(None, limit_ns).speedup == 4.0
