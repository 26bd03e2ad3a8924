"""Every rule for PTX, on what NVRTC makes of small kernels."""

import pytest

from evaluator_svc.inspector import inspect_ptx
from evaluator_svc.policy import RULES, RuleClass, Subject
from evaluator_svc.policy.number_formats import ObjectFacts
from evaluator_svc.policy.rules import rule_of
from kernel_foundry.domain.finding import FindingKind, Severity
from kernel_foundry.domain.language import Language
from tests.behaviour import nvrtc

pytestmark = pytest.mark.skipif(bool(nvrtc.absence()), reason=nvrtc.absence() or "NVRTC is there")

SEVERITIES = {
    RuleClass.REJECT: (FindingKind.POLICY, Severity.ERROR),
    RuleClass.SUSPECT: (FindingKind.SUSPICION, Severity.WARNING),
    RuleClass.NOTE: (FindingKind.POLICY, Severity.INFO),
}

Snippet = tuple[str, str]
"""What stands before a kernel, and its body."""


def ptx(before: str, body: str, *options: str) -> bytes:
    kernel = f'extern "C" __global__ void k(float* out, const float* x, int n) {{\n{body}\n}}'
    built = nvrtc.build(f"{before}\n{kernel}", options=options)
    assert built.ptx, built.log
    return built.ptx


def special(register: str) -> Snippet:
    return "", f'unsigned v; asm volatile("mov.u32 %0, %%{register};" : "=r"(v)); out[n] = v;'


def wide(register: str) -> Snippet:
    body = f'long long v; asm volatile("mov.u64 %0, %%{register};" : "=l"(v)); out[n] = v;'
    return "", body


def flagged(store: str, load: str) -> Snippet:
    """Write a number that the neighbour reads behind a flag, by instructions for the flag."""
    return "", (
        "int* flags = (int*)x; float before = 0.0f; int seen = 0; if (blockIdx.x > 0) { do {"
        f' asm volatile("{load}.global.s32 %0, [%1];" : "=r"(seen) : "l"(flags + blockIdx.x - 1)'
        ' : "memory"); } while (seen == 0); before = out[blockIdx.x - 1]; }'
        " out[blockIdx.x] = before + n;"
        f' asm volatile("{store}.global.s32 [%0], 1;" :: "l"(flags + blockIdx.x) : "memory");'
    )


def vector(registers: str, kind: str = "u64") -> Snippet:
    """Write special registers as the members of a vector."""
    return "", (
        "__shared__ __align__(16) unsigned long long told[2];"
        f'asm volatile("st.shared.v2.{kind} [%0], {{{registers}}};"'
        ' :: "r"((unsigned)__cvta_generic_to_shared(told)) : "memory");'
        "__syncthreads(); out[n] = told[0] + told[1];"
    )


FOUND: dict[str, tuple[Snippet, ...]] = {
    "object.global_state": (
        ("__device__ int calls;", "out[0] = ++calls;"),
        ("__device__ int kept[64];", "out[n] = kept[n & 63];"),  # nothing is seen to write it
        # The address of a table is put together by jumps, from that of the output.
        (
            "__device__ int kept[64] = {1};",
            "unsigned long long at = (unsigned long long)out, d = (unsigned long long)kept - at;"
            "\n#pragma unroll 1\nfor (int b = 0; b < 64; ++b) if (d >> b & 1)"
            ' asm volatile("add.u64 %0, %0, %1;" : "+l"(at) : "l"(1ull << b)); ((int*)at)[n] = n;',
        ),
        # The same by what memory holds at places that its bits name.
        (
            "__device__ int kept[64] = {1};",
            "__shared__ unsigned same[256]; same[threadIdx.x] = threadIdx.x; __syncthreads();"
            "unsigned long long from = (unsigned long long)kept, at = 0;"
            "for (int b = 0; b < 8; ++b)"
            " at |= (unsigned long long)same[from >> 8 * b & 255] << 8 * b; ((int*)at)[n] = n;",
        ),
        (
            "",
            'unsigned v; asm("{.global .b32 kept[0x40000]; ld.global.u32 %0, [kept];}" : "=r"(v));'
            "out[n] = v;",
        ),
    ),
    "object.stale_memory": (
        ("", "extern __shared__ float s[]; out[n] = s[n] + x[n]; s[n] = out[n] + 1;"),
        ("", "extern __shared__ int s[]; __syncthreads(); out[n] = atomicAdd(s, 1);"),
        ("", "volatile int seen[4]; out[n] = seen[n & 3]; seen[n & 3] = n;"),
    ),
    "object.foreign_memory": (("__managed__ int host;", "out[0] = host;"),),
    "object.print": (("", 'printf("%d", n);'),),
    "object.heap": (("", "float* p = (float*)malloc(n); p[n] = x[n]; out[n] = p[0]; free(p);"),),
    "object.assert": (("", "assert(n > 3); out[0] = 1.0f;"),),
    "object.launch_counter": (
        wide("gridid"),
        wide("current_graph_exec"),
        vector("%%gridid, %%gridid"),
        vector("%%current_graph_exec, %%gridid"),
        special("envreg3"),
        # An assembler may take such a name for either.
        (
            "",
            'long long v; asm("{.reg .u64 %%gridid; mov.u64 %0, %%gridid;}" : "=l"(v)); *out = v;',
        ),
    ),
    "object.discard": (("", 'asm volatile("discard.global.L2 [%0], 128;" :: "l"(out));'),),
    "object.absolute_address": (
        ("", "((float*)0x7f0000001000ull)[threadIdx.x] = x[n];"),
        ("", "out[n] = *(const volatile float*)0x7f0000001000ull;"),
        ("", 'asm volatile("{.reg .b64 a; mov.b64 a, 0x7f00001000; st.global.u32 [a], 1;}");'),
        ("", "for (float* p = (float*)0x7f0000001000ull; n--; ++p) *p = 1.0f;"),
    ),
    "object.clock": (
        ("", "if (clock64() & 1) out[n] = x[n];"),
        ("", "out[n] = clock();"),
        wide("globaltimer"),
        vector("%%globaltimer, %%clock64"),
        (
            "#include <cuda/std/chrono>",
            "out[n] = cuda::std::chrono::system_clock::now().time_since_epoch().count();",
        ),
    ),
    "object.constant_table": (
        (
            "struct T { int v[9000]; constexpr T() : v() { for (int i = 0; i < 9000; ++i)"
            " v[i] = i * 7 % 13; } }; __device__ constexpr T table;",
            "out[n] = table.v[n];",
        ),
    ),
    "object.cache_hint": (
        (
            "",
            'unsigned long long p; asm volatile("createpolicy.fractional.L2::evict_last.b64 %0,'
            ' 1.0;" : "=l"(p)); out[n] = p;',
        ),
    ),
    "object.processor_id": (special("smid"), special("warpid")),
    "object.sleep": (("", "__nanosleep(100); out[n] = x[n];"),),
    "object.absent_lanes": (
        (
            "",
            "for (int i = threadIdx.x % 32; i < n; i += 32)"
            " out[i] = __shfl_xor_sync(0xffffffffu, x[i], 1);",
        ),
        ("", "if (threadIdx.x < 16) out[n] = __shfl_xor_sync(0xffffffffu, x[n], 1);"),
        (
            "",
            "if (threadIdx.x < 16) { __syncthreads(); out[n] = x[n]; } else __syncthreads();",
        ),
    ),
    "object.short_place": (("", "out[blockIdx.x * n + threadIdx.x] = x[0];"),),
    "object.unordered_ticket": (
        flagged("st.release.cta", "ld.acquire.gpu"),
        flagged("st.release.gpu", "ld.acquire.cta"),
        flagged("st.release.gpu", "ld.relaxed.gpu"),
    ),
}
TEXTS = {
    "object.unreadable": b"no module",
    "object.import": b".version 9.0\n.target sm_90\n.extern .func system (.param .b64 a);\n",
    "object.device_runtime": (
        b".version 9.0\n.target sm_90\n.extern .func cudaLaunchDeviceV2 (.param .b64 a);\n"
    ),
}
"""Modules that NVRTC would not make whole."""
ELSEWHERE = {
    *("object.missing_kernel", "object.narrow_float"),
    *("object.lost_update", "object.unordered_update"),
}

HONEST: dict[str, tuple[Snippet, ...]] = {
    "object.lost_update": (("", "if (threadIdx.x == 0) atomicAdd(out, x[blockIdx.x]);"),),
    "object.absent_lanes": (
        ("", "if (threadIdx.x < 16) out[n] = __shfl_xor_sync(0xffffu, x[n], 1);"),
        (
            "",
            "if (threadIdx.x < 64) out[n] = __shfl_xor_sync(0xffffffffu, x[n], 1);"
            "for (int row = threadIdx.x / 32; row < n; row += 4)"
            " out[row] = __shfl_xor_sync(0xffffffffu, x[row], 1);",
        ),
        (
            "",
            "for (;;) { const int row = __shfl_sync(0xffffffffu, threadIdx.x % 32 + x[n], 0);"
            " if (row >= n) return; out[row] = __shfl_xor_sync(0xffffffffu, x[row], 1); }",
        ),
    ),
    "object.short_place": (("", "out[(size_t)blockIdx.x * n + threadIdx.x] = x[0];"),),
    "object.unordered_ticket": (flagged("st.release.gpu", "ld.acquire.gpu"),),
    "object.unreadable": (
        # Everything that hand-written PTX has: comments, labels, predicates, vectors, scopes.
        (
            "",
            'float a, b; asm volatile("{ // a comment\\n .reg .pred p; .reg .b32 t;\\n"'
            '"setp.ne.b32 p, %4, 0; /* and another */ @!p bra SKIP;\\n"'
            '"ld.global.nc.v2.f32 {%0, %1}, [%2 + 8]; SKIP: mov.b32 t, %%laneid; }"'
            ': "=f"(a), "=f"(b) : "l"(x), "r"(n), "r"(n)); out[n] = a + b;',
        ),
        ("", 'asm volatile(".pragma \\"nounroll\\";"); out[n] = x[n];'),
        (
            "",
            "__shared__ __align__(128) unsigned long long m;"
            "unsigned s = __cvta_generic_to_shared(&m);"
            'asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(s));'
            'asm volatile("fence.proxy.async.shared::cta;"); __syncthreads();'
            'asm volatile("{.reg .pred P; W: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], 0;'
            ' @P bra D; bra W; D: }" :: "r"(s)); out[n] = x[n];',
        ),
        (
            "",
            "float d[4] = {}; unsigned a = n, b = n;"
            'asm volatile("mma.sync.aligned.m16n8k8.row.col.'
            'f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"'
            ': "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b)); out[n] = d[0];',
        ),
        (
            "",
            'asm volatile("wgmma.fence.sync.aligned; wgmma.commit_group.sync.aligned;'
            ' wgmma.wait_group.sync.aligned 0;"); out[n] = x[n];',
        ),
    ),
    "object.missing_kernel": (
        (
            "template <int N> __device__ float times(float v) { return N * v; }"
            'extern "C" __global__ void other(float* out) { out[0] = times<3>(1.0f); }',
            "out[n] = times<2>(x[n]);",
        ),
    ),
    "object.import": (
        ("", "out[n] = expf(x[n]) * erff(x[n]) + tanhf(x[n]) + lgammaf(x[n]) + powf(x[n], 3.5f);"),
        (
            "#include <cub/block/block_reduce.cuh>",
            "using R = cub::BlockReduce<float, 128>; __shared__ typename R::TempStorage t;"
            "float s = R(t).Sum(x[threadIdx.x]); if (threadIdx.x == 0) out[n] = s;",
        ),
    ),
    "object.global_state": (
        ("__constant__ float t[256] = {1, 2, 3};", "out[n] = t[n & 255];"),
        ("__device__ constexpr float t[4] = {1, 2, 3, 4};", "out[n] = t[n & 3];"),
        (
            "",
            "static const float t[8] = {1, 2, 3, 4, 5, 6, 7, 8};"
            "float s = 0; for (int i = 0; i < 8; ++i) if (i < n) s += t[i] * x[i]; out[n] = s;",
        ),
        ("struct T { static constexpr int v[4] = {3, 1, 2, 0}; };", "out[T::v[n & 3]] = x[n];"),
        ("", 'const char* word = n > 3 ? "hello world" : "other"; out[n] = word[n & 3];'),
        ("", "out[n] = sin((double)x[n]) + lgamma((double)x[n]);"),
        (
            "__device__ float a(float v) { return v + 1; } __device__ float b(float v)"
            " { return v * 2; } typedef float (*F)(float); __device__ const F f[2] = {a, b};",
            "out[n] = f[n & 1](x[n]);",
        ),
        (
            "",
            "__shared__ unsigned last; if (!threadIdx.x) last = atomicAdd((unsigned*)out, 1u);"
            "__syncthreads(); if (last == gridDim.x - 1) out[n] = x[n];",
        ),
    ),
    "object.stale_memory": (
        (
            "",
            "float a[32] = {}; for (int i = 0; i < n; ++i) a[i & 31] += x[i]; out[0] = a[n & 31];",
        ),
        (
            "",
            "extern __shared__ float s[]; for (int t = 0; t < n; ++t) { s[threadIdx.x] = x[t];"
            "__syncthreads(); out[t] += s[threadIdx.x ^ 1]; __syncthreads(); }",
        ),
        # One part of the block fills what another part reads.
        (
            "",
            "__shared__ float s[64]; if (threadIdx.x < 32) { s[threadIdx.x] = x[threadIdx.x];"
            'asm volatile("bar.arrive 1, 64;" ::: "memory"); } else {'
            'asm volatile("bar.sync 1, 64;" ::: "memory"); out[n] = s[threadIdx.x - 32]; }',
        ),
        (
            "#include <cuda_pipeline.h>",
            "__shared__ float s[128];"
            "__pipeline_memcpy_async(s + threadIdx.x, x + threadIdx.x, 4); __pipeline_commit();"
            "__pipeline_wait_prior(0); __syncthreads(); out[n] = s[n & 127];",
        ),
    ),
    "object.foreign_memory": (
        (
            "",
            "extern __shared__ float s[]; s[threadIdx.x] = x[n];"
            "__syncthreads(); out[n] = s[threadIdx.x ^ 1];",
        ),
    ),
    "object.print": (
        (
            "__device__ float printf_scale(float v) { return 2 * v; }",
            "out[n] = printf_scale(x[n]);",
        ),
    ),
    "object.heap": (
        (
            "__device__ int free_slots(int n) { return 4 - n; }",
            "float malloc_[4] = {}; malloc_[n & 3] = x[n]; out[n] = malloc_[free_slots(n) & 3];",
        ),
    ),
    "object.assert": (
        ("", 'assert(n > 3 && "sizes"); out[n] = x[n];'),
        ("", 'static_assert(sizeof(int) == 4, "assert"); out[n] = x[n];'),
    ),
    "object.device_runtime": (
        (
            "#include <cooperative_groups.h>",
            "cooperative_groups::this_grid().sync(); out[n] = x[n];",
        ),
        (
            "#include <cuda/barrier>",
            "__shared__ cuda::barrier<cuda::thread_scope_block> b;"
            "if (threadIdx.x == 0) init(&b, blockDim.x); __syncthreads(); b.arrive_and_wait();"
            "out[n] = x[n];",
        ),
        (
            "#include <cooperative_groups.h>",
            "auto c = cooperative_groups::this_cluster();"
            "__shared__ float s; s = x[n]; c.sync(); out[n] = *c.map_shared_rank(&s, 0); c.sync();",
        ),
    ),
    "object.launch_counter": (
        special("laneid"),
        special("nctaid.x"),
        special("clusterid.x"),
        vector("%%laneid, %%ctaid.x", "u32"),
        (
            "",
            'unsigned v; asm(".reg .u32 %%one; .reg .v2 .u32 %%two; .reg .u32 %%many<3>;"'
            '"mov.u32 %%one, 1; mov.v2.u32 %%two, {%%one, %%laneid}; mov.u32 %%many2, %%two.x;"'
            '"mov.u32 %0, %%many2;" : "=r"(v)); out[n] = v;',
        ),
    ),
    "object.discard": (
        ("", 'asm volatile("st.global.L1::no_allocate.f32 [%0], %1;" :: "l"(out), "f"(x[n]));'),
        ("", "out[n] = __ldcs(x + n); __stcs(out, x[0]);"),
        ("", 'asm volatile("prefetch.global.L2 [%0];" :: "l"(x)); out[n] = x[n];'),
    ),
    "object.absolute_address": (
        (
            "",
            "auto a = (reinterpret_cast<unsigned long long>(out) + 255) / 256 * 256;"
            "((float*)a)[n] = x[n];",
        ),
        ("", "const float* p[4] = {x, x + n, x + 2 * n, x + 3}; out[n] = p[n & 3][threadIdx.x];"),
        ("", "float* p = n > 3 ? out : nullptr; if (p) p[n] = x[n];"),
        (
            "",
            "extern __shared__ char s[]; float* t = (float*)(16 * threadIdx.x + s);"
            "t[0] = x[n]; __syncthreads(); out[n] = t[0];",
        ),
    ),
    "object.clock": (
        ("#include <cuda/atomic>", "cuda::atomic_ref<int> a(*(int*)out); a.wait(3);"),
    ),
}
"""What looks like what a rule catches, and is ordinary engineering."""


@pytest.mark.parametrize(
    ("rule", "snippet"), [(rule, s) for rule, several in FOUND.items() for s in several]
)
def test_what_a_rule_catches_names_the_rule(rule: str, snippet: Snippet) -> None:
    found = {f.rule: f for f in inspect_ptx(ptx(*snippet), ("k",)).findings}

    assert rule in found
    expected = SEVERITIES[rule_of(rule).rule_class]
    assert (found[rule].kind, found[rule].severity) == expected


@pytest.mark.parametrize(("rule", "text"), TEXTS.items())
def test_what_no_compiler_makes_whole_names_the_rule(rule: str, text: bytes) -> None:
    (found,) = inspect_ptx(text, ()).findings

    assert (found.rule, found.severity) == (rule, Severity.ERROR)


@pytest.mark.parametrize(
    ("rule", "snippet"), [(rule, s) for rule, several in HONEST.items() for s in several]
)
def test_honest_look_alikes_pass(rule: str, snippet: Snippet) -> None:
    # As a builder compiles: assertions are left out.
    assert inspect_ptx(ptx(*snippet, "-DNDEBUG"), ("k",)).findings == (), rule


def test_every_refusing_rule_has_an_honest_look_alike() -> None:
    refusing = {
        rule.id
        for rule in RULES
        if rule.subject is Subject.OBJECT
        and rule.rule_class is RuleClass.REJECT
        and rule.is_for(Language.CUDA)
    }

    assert refusing <= set(HONEST)


def test_every_rule_has_a_case() -> None:
    rules = {
        rule.id for rule in RULES if rule.subject is Subject.OBJECT and rule.is_for(Language.CUDA)
    }

    assert set(FOUND) | set(TEXTS) | ELSEWHERE == rules


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        ("out[n] = expf(x[n]) * erff(x[n]);", ObjectFacts()),
        (
            'float r; asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x[n])); out[n] = r;',
            ObjectFacts(rough_functions=("tanh.approx",)),
        ),
        ("out[n] = __half2float(__float2half(x[n]));", ObjectFacts(formats=("float16",))),
        (
            "out[n] = __int_as_float(__float_as_int(x[n]) & 0xffffe000) * x[0];",
            ObjectFacts(masks_low_bits=True),
        ),
        (
            'unsigned t; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(t) : "f"(x[n])); out[n] = t;',
            ObjectFacts(formats=("TF32",)),
        ),
        ("out[n] = __dp4a((int)x[n], n, 3);", ObjectFacts(formats=("int8",))),
        ("out[n] = __dp2a_lo((int)x[n], n, 3);", ObjectFacts(formats=("int8",))),
        ("out[n] = __vadd4((int)x[n], n);", ObjectFacts()),
    ],
)
def test_narrow_formats_are_facts(body: str, facts: ObjectFacts) -> None:
    assert inspect_ptx(ptx("", body)).numbers == facts
