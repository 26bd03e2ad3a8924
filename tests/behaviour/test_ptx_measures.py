"""What CUDA kernels are taken for, from the PTX that NVRTC makes of them."""

from pathlib import Path

import pytest

from evaluator_svc.behaviour import KernelFacts, PlanCounts, explain, measures
from evaluator_svc.inspector import inspect_ptx
from tests.behaviour import nvrtc

pytestmark = pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")

KERNELS = Path(__file__).parent / "kernels"
CELLS = {
    "row_per_thread": (0, 0, 0),
    "pointwise": (1, 0, 0),
    "pointwise_vector": (1, 0, 0),
    "online_softmax": (1, 2, 0),
    "row_per_warp": (1, 2, 2),
    "row_per_block": (1, 2, 1),
    "sum_by_atomics": (1, 2, 3),
    "grid_barrier": (1, 0, 3),
    "matmul_shared_tile": (2, 2, 1),
    "matmul_async_copy": (3, 2, 1),
    "matmul_register_tile": (3, 3, 1),
    "matmul_matrix_units": (1, 3, 0),
}


def cell(ptx: bytes, *, launches: int = 1, scratch: int = 0, operators: int = 1) -> tuple:
    counts = PlanCounts(launch_count=launches, scratch_count=scratch, reference_op_count=operators)
    return measures(inspect_ptx(ptx).kernels, counts).cell


def facts(source: str) -> KernelFacts:
    return inspect_ptx(nvrtc.build(source).ptx).kernels


def kernel(body: str) -> str:
    parameters = "const float* x, const int* index, float* out, int n"
    return f'extern "C" __global__ void k({parameters}) {{ {body} }}'


@pytest.mark.parametrize(("name", "expected"), CELLS.items())
def test_known_kernels_have_their_cells(name: str, expected: tuple[int, int, int]) -> None:
    ptx = nvrtc.build((KERNELS / f"{name}.cu").read_text()).ptx

    assert cell(ptx) == expected


def test_names_and_comments_change_nothing() -> None:
    text = (KERNELS / "row_per_thread.cu").read_text()
    words = text.replace("top", "mma_sync_tile").replace("sum", "__shfl_atomicAdd")

    ptx = nvrtc.build(f"// __shared__ tiles, cp.async, online softmax\n{words}").ptx

    assert cell(ptx) == (0, 0, 0)


def test_fewer_passes_than_operators_is_fused() -> None:
    ptx = nvrtc.build((KERNELS / "pointwise.cu").read_text()).ptx

    assert cell(ptx, operators=3) == (1, 1, 0)
    assert cell(ptx, launches=2, scratch=1) == (1, 0, 3)


def test_an_unrolled_loop_is_one_pass() -> None:
    ptx = nvrtc.build((KERNELS / "row_per_thread.cu").read_text()).ptx

    assert inspect_ptx(ptx).kernels.pass_count == 3


@pytest.mark.parametrize(
    ("index", "is_contiguous"),
    [
        ("blockIdx.x * blockDim.x + threadIdx.x", True),
        ("n - 1 - threadIdx.x", True),
        ("min((int)threadIdx.x, n - 1)", True),
        ("threadIdx.x / 32 * n + threadIdx.x % 32", True),
        ("threadIdx.x / 48 * n + threadIdx.x % 48", True),
        ("int(threadIdx.y * 32 + threadIdx.x) / 32 * n + (threadIdx.x & 31)", True),
        ("threadIdx.x * n", False),
        ("threadIdx.x * 2", False),
        ("index[threadIdx.x]", False),
    ],
)
def test_addresses_are_followed_through_their_arithmetic(index: str, is_contiguous: bool) -> None:
    found = facts(kernel(f"out[blockIdx.x] = x[{index}];"))

    assert (found.strided_weight == 0) is is_contiguous


@pytest.mark.parametrize(("lanes", "is_contiguous"), [(1, False), (2, True), (4, True), (8, True)])
def test_neighbours_that_fill_a_sector_are_enough(lanes: int, is_contiguous: bool) -> None:
    index = f"(int)threadIdx.x / {lanes} * (n / 4) + (int)threadIdx.x % {lanes}"

    found = facts(kernel(f"((float4*)out)[threadIdx.x] = __ldg((const float4*)x + {index});"))

    assert (found.strided_weight == 0) is is_contiguous


def test_a_function_that_is_not_inlined_is_walked_with_its_arguments() -> None:
    source = (
        "__noinline__ __device__ void put(float* to, float v, int i) { to[i] = v; }\n"
        + kernel("put(out, x[threadIdx.x], threadIdx.x); put(out, 1.0f, threadIdx.x + n);")
    )

    found = facts(source)

    assert (found.contiguous_weight, found.strided_weight) == (3.0, 0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("out[threadIdx.x] = x[threadIdx.x]; __syncwarp();", 2),
        ("out[threadIdx.x] = __syncthreads_or(n) ? x[threadIdx.x] : 0.0f;", 1),
        ("__shared__ int s; if (threadIdx.x == 0) s = n; atomicAdd(&s, 1); out[0] = s;", 1),
        ("atomicMax((int*)out, index[threadIdx.x]);", 3),
        ('asm volatile("barrier.cluster.arrive.aligned;\\n barrier.cluster.wait.aligned;");', 3),
        ("while (*(volatile int*)index != n) {} out[threadIdx.x] = 1.0f;", 0),
        (
            'int seen; do asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(index));'
            " while (seen != n); out[threadIdx.x] = 1.0f;",
            3,
        ),
    ],
)
def test_who_waits_for_whom(body: str, expected: int) -> None:
    assert cell(nvrtc.build(kernel(body)).ptx)[2] == expected


def test_a_welford_mean_is_online() -> None:
    body = """float mean = 0.0f; for (int i = 0; i < n; ++i) {
        float d = x[i * 32 + threadIdx.x] - mean; mean += d / (i + 1.0f); }
        out[threadIdx.x] = mean;"""

    assert facts(kernel(body)).is_online


def test_independent_accumulators_are_no_register_tile() -> None:
    body = """float a = 0, b = 0, c = 0, d = 0;
        for (int i = threadIdx.x; i < n; i += 128) {
          a += x[i] * x[i]; b += x[i + 32] * x[i + 32];
          c += x[i + 64] * x[i + 64]; d += x[i + 96] * x[i + 96]; }
        out[threadIdx.x] = a + b + c + d;"""

    assert not facts(kernel(body)).has_register_tile


def test_bulk_copies_stage_ahead() -> None:
    body = """__shared__ alignas(128) float t[256]; __shared__ unsigned long long done;
        unsigned to = __cvta_generic_to_shared(t), bar = __cvta_generic_to_shared(&done);
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1], 1024, [%2];" :: "r"(to), "l"(x), "r"(bar) : "memory");
        __syncthreads(); out[threadIdx.x] = t[threadIdx.x];"""

    found = facts(kernel(body))

    assert found.stages_local
    assert found.moves_ahead


def test_every_level_has_its_reason() -> None:
    ptx = nvrtc.build((KERNELS / "matmul_register_tile.cu").read_text()).ptx
    counts = PlanCounts(launch_count=1, scratch_count=0, reference_op_count=3)

    reasons = explain(inspect_ptx(ptx).kernels, counts)

    assert [r.split(":")[0] for r in reasons] == ["memory 3", "algorithm 3", "synchronization 1"]
