from dataclasses import replace

import pytest

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.diagnosis import performance_findings
from evaluator_svc.diagnosis.performance import LaunchFacts
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import ClockBlock, WorkloadResult
from kernel_foundry.domain.finding import Finding, FindingKind
from tests.domain_values import CPU, timing_of, workload_admission

PEAKS = Peaks(
    bandwidth_bytes_per_second=1e9,
    cache_bandwidth_bytes_per_second=1e10,
    flops_per_second=1e9,
    launch_ns=10_000,
    read_bandwidth_bytes_per_second=1e9,
)
DEVICE = replace(CPU, compute_units=8, shared_bytes=32768, cache_bytes=1 << 20)


def findings(
    *,
    median_ns: float = 2e6,
    bytes_: int = 0,
    flops: int = 0,
    half_width: float = 0.01,
    warm_ns: float | None = None,
    kernels: KernelFacts | None = None,
    launches: LaunchFacts | None = None,
    own_share: float | None = None,
    has_counters: bool = False,
    clocks: tuple[ClockBlock, ...] = (),
) -> dict[FindingKind, Finding]:
    admission = workload_admission(
        flops=flops,
        minimal_bytes=bytes_,
        traffic_bound_ns=float(bytes_),
        arithmetic_estimate_ns=float(flops),
    )
    result = WorkloadResult(
        workload="default",
        timing=replace(timing_of(median_ns, half_width=half_width), clocks=clocks),
        own_share=own_share,
        warm_timing=None if warm_ns is None else timing_of(warm_ns, half_width=0.01, is_cold=False),
    )
    found = performance_findings(
        result,
        admission,
        DEVICE,
        PEAKS,
        kernels=kernels,
        launches=launches,
        has_counters=has_counters,
    )
    return {f.kind: f for f in found}


@pytest.mark.parametrize(
    ("amounts", "kind"),
    [
        ({"bytes_": 1_600_000, "flops": 1_000}, FindingKind.MEMORY_BOUND),
        ({"bytes_": 1_000, "flops": 1_600_000}, FindingKind.COMPUTE_BOUND),
        ({"bytes_": 400_000, "flops": 400_000}, FindingKind.LATENCY_BOUND),
        ({"bytes_": 10_000, "median_ns": 20_000.0}, FindingKind.LAUNCH_BOUND),
    ],
)
def test_what_binds_follows_from_the_numbers(amounts: dict, kind: FindingKind) -> None:
    found = findings(**amounts)[kind]

    assert {e.name for e in found.evidence} == {"memory_share", "compute_share", "launch_share"}
    assert found.hint


def test_only_at_the_traffic_bound_is_little_left_to_gain() -> None:
    at, near = findings(bytes_=1_950_000), findings(bytes_=1_900_000)

    assert set(at) == set(near) == {FindingKind.TRAFFIC_BOUND}
    assert "little is left" in at[FindingKind.TRAFFIC_BOUND].hint
    assert near[FindingKind.TRAFFIC_BOUND].hint == ""


def test_shares_are_evidence() -> None:
    found = findings(bytes_=500_000, flops=1_000_000)
    (traffic, *_) = found[FindingKind.TRAFFIC_BOUND].evidence
    (arithmetic, *_) = found[FindingKind.ARITHMETIC_ESTIMATE].evidence

    assert (traffic.name, traffic.value) == ("traffic_bound_share", 0.25)
    assert (arithmetic.name, arithmetic.value) == ("arithmetic_estimate_share", 0.5)


def test_an_estimate_that_was_beaten_is_told_and_clips_nothing() -> None:
    found = findings(bytes_=100_000, flops=9_000_000)
    beaten = found[FindingKind.ARITHMETIC_ESTIMATE]

    assert beaten.message.startswith("faster than the arithmetic estimate: it does less or cheaper")
    assert beaten.evidence[0].value == 4.5
    assert set(found) == {FindingKind.TRAFFIC_BOUND, FindingKind.ARITHMETIC_ESTIMATE}
    assert not any("left to gain" in finding.hint for finding in found.values())


def test_an_estimate_far_below_the_traffic_bound_is_not_worth_a_word() -> None:
    assert FindingKind.ARITHMETIC_ESTIMATE not in findings(bytes_=1_600_000, flops=1_000)


def test_a_much_faster_warm_run_shows_cached_data() -> None:
    assert FindingKind.CACHED_DATA in findings(bytes_=1_000_000, warm_ns=5e5)
    assert FindingKind.CACHED_DATA not in findings(bytes_=1_000_000, warm_ns=1.9e6)


def test_a_wide_interval_is_noise() -> None:
    assert FindingKind.NOISY_TIMING in findings(half_width=0.2)


def test_strided_access_is_told_with_its_share() -> None:
    found = findings(kernels=KernelFacts(strided_weight=3.0, contiguous_weight=1.0))

    assert found[FindingKind.STRIDED_ACCESS].evidence[0].value == 0.75
    assert "sub-group" in found[FindingKind.STRIDED_ACCESS].hint


def test_strided_access_is_not_counted_in_code_where_that_says_nothing_of_bytes() -> None:
    strided = KernelFacts(strided_weight=3.0, contiguous_weight=1.0)
    fed_by_copies = replace(strided, has_matrix_product=True, moves_ahead=True)

    assert FindingKind.STRIDED_ACCESS not in findings(kernels=strided, has_counters=True)
    assert FindingKind.STRIDED_ACCESS not in findings(kernels=fed_by_copies)


def test_counters_tell_better_than_estimates_that_no_unit_is_busy() -> None:
    idle = {"bytes_": 400_000, "flops": 400_000}

    assert FindingKind.LATENCY_BOUND in findings(**idle)
    assert FindingKind.LATENCY_BOUND not in findings(**idle, has_counters=True)


@pytest.mark.parametrize(("groups", "size", "word"), [(4, 64, "idle"), (64, 1, "vector unit")])
def test_work_groups_that_waste_the_device_are_told(groups: int, size: int, word: str) -> None:
    launches = LaunchFacts(launch_count=1, group_count=groups, group_size=size)

    found = findings(bytes_=1_200_000, launches=launches)[FindingKind.LATENCY_BOUND]

    assert word in found.message


def test_an_untimed_workload_has_no_findings() -> None:
    admission = workload_admission("w", held_out=True)

    assert performance_findings(WorkloadResult(workload="w"), admission, DEVICE, PEAKS) == ()


def test_the_share_of_library_calls_is_told_where_there_are_any() -> None:
    assert FindingKind.LIBRARY_SHARE not in findings()
    fused, decided = (findings(own_share=s)[FindingKind.LIBRARY_SHARE] for s in (0.75, 0.1))
    assert "library calls take 25% of the time, own kernels 75%" in fused.message
    assert not fused.hint
    assert "has to take their place" in decided.hint


def test_a_device_that_was_slowed_down_is_told_with_the_reason() -> None:
    usual = ClockBlock(
        sample_count=6,
        compute_mhz_before=1980,
        compute_mhz_after=1980,
        memory_mhz=3201,
        throttle_reasons=("gpu_idle",),
    )
    hot = replace(usual, sample_count=4, throttle_reasons=("gpu_idle", "sw_thermal_slowdown"))
    assert FindingKind.THROTTLED not in findings(clocks=(usual,))
    found = findings(clocks=(usual, hot))[FindingKind.THROTTLED]
    assert "(sw_thermal_slowdown) during 4 of" in found.message
