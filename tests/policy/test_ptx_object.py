"""What CUDA candidates are refused for, from the PTX that NVRTC makes of them."""

from pathlib import Path

import pytest

from evaluator_svc.inspector import inspect_ptx
from kernel_foundry.domain.finding import Finding, Severity
from tests.behaviour import nvrtc

pytestmark = pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")

KERNELS = Path(__file__).parents[1] / "behaviour" / "kernels"


def findings(before: str, body: str) -> tuple[Finding, ...]:
    built = nvrtc.build(
        f'{before}\nextern "C" __global__ void k(float* out, const float* x, int n) {{\n{body}\n}}'
    )
    assert built.ptx, built.log
    return inspect_ptx(built.ptx, ("k",)).findings


REFUSED = [
    ("__device__ int counter;", "out[0] = ++counter;", "counter"),
    ("__device__ int counter;", "atomicAdd(&counter, 1);", "counter"),
    ("namespace a { __device__ float cache[64]; }", "a::cache[n] = x[n];", "cache"),
    ("", "static __device__ int calls; out[0] = calls++;", "calls"),
    (
        "__device__ int a, b;",
        'int* p = n > 3 ? &a : &b; asm volatile("st.u32 [%0], 1;" :: "l"(p));',
        "variable a",
    ),
    (
        "__device__ int kept; __noinline__ __device__ void put(int* p) { *p += 1; }",
        "put(&kept);",
        "kept",
    ),
    (
        "__device__ int kept; __noinline__ __device__ int* where() { return &kept; }",
        "*where() = n;",
        "kept",
    ),
    ("__device__ int kept; __device__ int* const held = &kept;", "*held = n;", "kept"),
    (
        "__device__ int kept; struct F { int* p; };",
        "__shared__ F f; f.p = &kept; __syncthreads(); *f.p += 1;",
        "kept",
    ),
    (
        "__device__ float4 kept;",
        'asm volatile("red.global.add.f32 [%0], 1.0;" :: "l"(&kept));',
        "kept",
    ),
    (
        "",
        'asm volatile("{ .global .u32 %%kept; st.global.u32 [%%kept], %0; }" :: "r"(n));',
        "kept would keep state",
    ),
    (
        "",  # for the assembler a statement may follow on the same line
        'asm volatile("{ .global .u32 kept;\\n .loc 1 1 1 st.global.u32 [kept], 5;\\n }");',
        ".loc holds something else",
    ),
    (
        "",
        'asm volatile("{ .global .align 128 .b8 map[128]; .reg .u64 a; mov.u64 a, map;"'
        '" tensormap.replace.tile.global_address.global.b1024.b64 [a], a; }");',
        "map would keep state",
    ),
    ("", 'printf("%d", n);', "printf"),
    ("", "out = (float*)malloc(n); out[0] = 1.0f;", "heap"),
    (
        "__constant__ int fixed;",
        'unsigned long long a; asm("{ .reg .u64 t; mov.u64 t, fixed; cvta.const.u64 %0, t; }"'
        ' : "=l"(a)); *(int*)a = n;',
        "fixed",
    ),
    (
        "",
        'asm volatile("{ .global .u32 hidden; st.global.u32 [hidden], %0; }" :: "r"(n));',
        "hidden",
    ),
    ("", "assert(n > 3); out[0] = 1.0f;", "assert"),
    ("__managed__ int shared_with_host;", "out[0] = shared_with_host;", "shared_with_host"),
]


@pytest.mark.parametrize(("before", "body", "reason"), REFUSED)
def test_what_leaves_the_kernel_is_refused_by_name(before: str, body: str, reason: str) -> None:
    refused = [f for f in findings(before, body) if f.severity is Severity.ERROR]

    assert [f for f in refused if reason in f.message]


ALLOWED = [
    ("constexpr float table[] = {1, 2, 3, 4};", "out[n] = table[n & 3];"),
    ("__device__ const float table[] = {1, 2, 3, 4};", "out[n] = table[n & 3];"),
    ("__constant__ float table[] = {1, 2, 3, 4};", "out[n] = table[n & 3] * x[n];"),
    (
        "static const float a[] = {1, 2}, b[] = {3, 4};",
        "const float* t = n ? a : b; out[n] = t[n];",
    ),
    (
        "__constant__ float t[] = {1, 2}; __noinline__ __device__ float at(const float* p, int i)"
        " { return p[i]; }",
        "out[n] = at(t, n);",
    ),
    ("", "extern __shared__ float tile[]; tile[n] = x[n]; __syncthreads(); out[0] = tile[0];"),
    ("", 'asm volatile("prefetch.global.L2 [%0];" :: "l"(x)); out[n] = x[n];'),
    ("", "out[n] = sinf(x[n]) + expf(x[n]) + powf(x[n], 1.7f) + erff(x[n]);"),
]


@pytest.mark.parametrize(("before", "body"), ALLOWED)
def test_honest_kernels_are_clean(before: str, body: str) -> None:
    assert findings(before, body) == ()


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.cu")), ids=lambda p: p.stem)
def test_the_known_kernels_are_clean(path: Path) -> None:
    found = {f.rule for f in inspect_ptx(nvrtc.build(path.read_text()).ptx, ()).findings}
    assert found <= {"object.short_place"}


def test_a_clock_is_told_with_its_line_and_refuses_nothing() -> None:
    (clock,) = findings("", "out[n] = x[n];\nif (clock64() & 1) out[0] = 2.0f;")

    assert (clock.severity, clock.line) == (Severity.WARNING, 4)


def test_a_refusal_names_the_line_that_writes() -> None:
    (refused,) = findings("__device__ int counter;", "out[0] = 1.0f;\ncounter = n;")

    assert refused.line == 4


def test_data_kept_in_the_cache_is_told() -> None:
    body = """unsigned long long p;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p));
    asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(out), "f"(1.0f), "l"(p));"""

    assert [f.severity for f in findings("", body)] == [Severity.INFO]


def test_a_kernel_that_is_not_there_is_named() -> None:
    ptx = nvrtc.build((KERNELS / "pointwise.cu").read_text()).ptx

    assert "gelu" in inspect_ptx(ptx, ("gelu",)).findings[0].message


def test_addresses_too_tangled_to_follow_count_as_written() -> None:
    moves = "\n".join(f"mov.u64 %rd{i}, %rd{i + 1};" for i in range(200))
    text = f""".version 9.0
.target sm_90
.global .u32 counter;
.visible .entry k() {{
.reg .b64 %rd<202>; .reg .u32 %r<2>;
{moves}
mov.u64 %rd200, counter;
st.global.u32 [%rd0], %r1;
ret;
}}"""

    (refused,) = inspect_ptx(text.encode(), ("k",)).findings

    assert "counter" in refused.message


@pytest.mark.parametrize("code", [b"", b"\0\1", b".version 9.0\n.target sm_90\n.entry k() {"])
def test_text_that_is_no_module_is_refused(code: bytes) -> None:
    (refused,) = inspect_ptx(code, ()).findings

    assert refused.severity is Severity.ERROR
