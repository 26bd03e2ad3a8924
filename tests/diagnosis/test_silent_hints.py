"""Every hint is held to cases where it must stay silent: nothing is told that is done already."""

import pytest

from evaluator_svc.behaviour import KernelFacts, Scope
from evaluator_svc.diagnosis.bound_hints import bound_hint
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.launch_facts import LaunchFacts
from tests.diagnosis.test_performance import findings

ONE = LaunchFacts(launch_count=1, group_count=64, group_size=256)
TWO = LaunchFacts(launch_count=2, group_count=64, group_size=256)
VECTORS = KernelFacts(contiguous_weight=8.0, vector_weight=8.0)
ONE_PASS = KernelFacts(contiguous_weight=8.0, pass_count=1)
TILES = KernelFacts(has_register_tile=True, contiguous_weight=8.0)
MATRIX = KernelFacts(has_matrix_product=True, has_register_tile=True, moves_ahead=True)
ROWS = KernelFacts(reduces_in_group=True, barrier_scopes=(Scope.WORK_GROUP,))


@pytest.mark.parametrize(
    ("kind", "language", "speaks", "silent", "words"),
    [
        # (facts, launches) of a kernel that is told so, and of one that does it already.
        ("launch_bound", "cuda", (None, TWO), (None, ONE), "fuse the kernels"),
        ("launch_bound", "sycl", (None, TWO), (None, ONE), "fuse the kernels"),
        ("memory_bound", "cuda", (ONE_PASS, TWO), (ONE_PASS, ONE), "touch each element once"),
        ("memory_bound", "sycl", (ONE_PASS, TWO), (ONE_PASS, ONE), "touch each element once"),
        ("memory_bound", "cuda", (ONE_PASS, ONE), (VECTORS, ONE), "vectors of 16 bytes"),
        ("compute_bound", "cuda", (ONE_PASS, ONE), (TILES, ONE), "register tiles"),
        ("compute_bound", "cuda", (TILES, ONE), (MATRIX, ONE), "matrix units"),
        ("latency_bound", "cuda", (ONE_PASS, ONE), (TILES, ONE), "more loads in flight"),
        ("latency_bound", "cuda", (TILES, ONE), (MATRIX, ONE), "the next tile"),
        ("latency_bound", "sycl", (ONE_PASS, ONE), (VECTORS, ONE), "uniform loop counter"),
        ("latency_bound", "sycl", (ROWS, ONE), (ONE_PASS, ONE), "a row"),
        ("latency_bound", "sycl", (ROWS, ONE), (ONE_PASS, ONE), "barriers"),
    ],
)
def test_what_is_done_already_is_not_advised(
    kind: str,
    language: str,
    speaks: tuple[KernelFacts | None, LaunchFacts],
    silent: tuple[KernelFacts | None, LaunchFacts],
    words: str,
) -> None:
    asked = FindingKind(kind), Language(language)

    assert words in bound_hint(*asked, *speaks)
    assert words not in bound_hint(*asked, *silent)


def test_a_hand_vectorised_kernel_is_not_told_to_fill_a_vector_unit() -> None:
    narrow = LaunchFacts(launch_count=1, group_count=64, group_size=1)
    told = findings(launches=narrow, kernels=ONE_PASS)
    assert "cannot fill a vector unit" in told[FindingKind.LATENCY_BOUND].message

    quiet = findings(launches=narrow, kernels=VECTORS)
    assert "vector unit" not in quiet[FindingKind.LATENCY_BOUND].message
    assert quiet[FindingKind.LATENCY_BOUND].hint == ""


def test_groups_of_one_lane_are_not_to_become_smaller() -> None:
    few = LaunchFacts(launch_count=1, group_count=2, group_size=4)
    told = findings(launches=few, kernels=VECTORS, median_ns=2e6)

    assert "smaller" not in told[FindingKind.LATENCY_BOUND].hint


def test_near_the_traffic_bound_no_access_is_found_fault_with() -> None:
    strided = KernelFacts(strided_weight=8.0, strided_line=3)
    launches = LaunchFacts(launch_count=1, group_count=2, group_size=4)
    far = findings(bytes_=500_000, kernels=strided, launches=launches)
    near = findings(bytes_=1_900_000, kernels=strided, launches=launches)

    assert far[FindingKind.STRIDED_ACCESS].line == 3
    assert set(near) == {FindingKind.TRAFFIC_BOUND}


def test_kernels_are_left_alone_where_library_calls_take_the_time() -> None:
    strided = KernelFacts(strided_weight=8.0)

    assert FindingKind.STRIDED_ACCESS in findings(kernels=strided, own_share=0.8)
    assert FindingKind.STRIDED_ACCESS not in findings(kernels=strided, own_share=0.1)
