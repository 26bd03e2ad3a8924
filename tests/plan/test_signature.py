"""The scan of device code finds kernels and their parameters, whatever surrounds them."""

from __future__ import annotations

import pytest

from kernel_foundry.plan import PlanError, kernels
from kernel_foundry.plan.source_text import strip_comments

SYCL = "SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<{}>))"


def _parameter(declaration: str, language: str = "cuda", **macros: object):
    mark = "__global__" if language == "cuda" else SYCL.format(1)
    source = f'extern "C" {mark} void k({declaration}) {{}}'
    (kernel,) = kernels(source, language, macros)
    (parameter,) = kernel.parameters
    return parameter


@pytest.mark.parametrize(
    "row",
    [
        ("float x", "x", "float32", 1, False, False),
        ("const float* __restrict__ x", "x", "float32", 1, True, True),
        ("float const *x", "x", "float32", 1, True, True),
        ("float* const x", "x", "float32", 1, True, False),
        ("float *__restrict x", "x", "float32", 1, True, False),
        ("const float x[]", "x", "float32", 1, True, True),
        ("const __half* x", "x", "float16", 1, True, True),
        ("sycl::half* x", "x", "float16", 1, True, False),
        ("__nv_bfloat16* x", "x", "bfloat16", 1, True, False),
        ("sycl::ext::oneapi::bfloat16* x", "x", "bfloat16", 1, True, False),
        ("float4* x", "x", "float32", 4, True, False),
        ("__half2* x", "x", "float16", 2, True, False),
        ("const sycl::vec<float, 8>* x", "x", "float32", 8, True, True),
        ("void* x", "x", "void", 1, True, False),
        ("size_t n", "n", "uint64", 1, False, False),
        ("std::size_t n", "n", "uint64", 1, False, False),
        ("unsigned n", "n", "uint32", 1, False, False),
        ("unsigned int n", "n", "uint32", 1, False, False),
        ("unsigned int", "", "uint32", 1, False, False),
        ("long long n", "n", "int64", 1, False, False),
        ("long n", "n", "int64", 1, False, False),
        ("int64_t n", "n", "int64", 1, False, False),
        ("const int n", "n", "int32", 1, False, False),
        ("unsigned char* m", "m", "uint8", 1, True, False),
        ("bool b", "b", "bool", 1, False, False),
        ("double d", "d", "float64", 1, False, False),
        ("float*", "", "float32", 1, True, False),
        ("int half", "half", "int32", 1, False, False),
        ("const float* half", "half", "float32", 1, True, True),
        ("half half", "half", "float16", 1, False, False),
        ("const half", "", "float16", 1, False, False),
        ("unsigned long", "", "uint64", 1, False, False),
        ("T* x", "x", "unknown", 1, True, False),
        ("float** x", "x", "unknown", 1, False, False),
        ("[[maybe_unused]] const __grid_constant__ int n", "n", "int32", 1, False, False),
    ],
)
def test_parameter_is_read(row) -> None:
    declaration, *expected = row
    p = _parameter(declaration)
    assert expected == [p.name, p.ctype, p.lanes, p.is_pointer, p.is_const]


@pytest.mark.parametrize(
    ("declaration", "ctype", "lanes"),
    [
        ("sycl::local_accessor<float, 1> t", "float32", 1),
        ("sycl::local_accessor<float> t", "float32", 1),
        ("local_accessor<sycl::half, 1> t", "float16", 1),
        ("sycl::local_accessor<sycl::vec<float, 4>, 1> t", "float32", 4),
        ("sycl::local_accessor<T, DIM> t", "float32", 1),
        ("sycl::local_accessor<float, 2> t", "unknown", 0),
    ],
)
def test_local_accessor_is_read(declaration, ctype, lanes) -> None:
    """Element and dimensions of a local accessor."""
    p = _parameter(declaration, "sycl", T="float", DIM=1)
    assert (p.name, p.ctype, p.lanes, p.is_local, p.is_pointer) == ("t", ctype, lanes, True, False)


def test_types_resolve_through_macros_and_aliases() -> None:
    """A plan's macro, #define, typedef and using name types; a loop of names ends."""
    source = (
        "#define T2 double\ntypedef unsigned  char byte_t;\nusing half = sycl::half;\n"
        "using real = T1;\n#define LOOP_A LOOP_B\n#define LOOP_B LOOP_A\n"
        'extern "C" __global__ void k(T1* a, const T2* b, byte_t* c, half* d, real* e, LOOP_A* f);'
    )
    (kernel,) = kernels(source, "cuda", {"T1": "float"})
    assert [p.ctype for p in kernel.parameters] == [
        "float32", "float64", "uint8", "float16", "float32", "unknown",
    ]  # fmt: skip


def test_sycl_attributes_may_stand_anywhere() -> None:
    """Several attributes, before and after extern "C"; dimensions through a macro."""
    source = f"""
    // extern "C" {SYCL.format(1)} void commented(int a);
    const char* text = "extern \\"C\\" void quoted(";
    {SYCL.format("DIM")} extern "C"
    SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::sub_group_size<SG>)) [[a(b)]]
    void one(int a) {{ if (a) {{ }} }}
    extern "C" float helper(float a);
    extern "C" SYCL_EXTERNAL {SYCL.format(3)} void two() {{}}
    """
    found = kernels(source, "sycl", {"DIM": 2, "SG": 16})
    assert [(k.name, k.dimensions, k.line) for k in found] == [("one", 2, 6), ("two", 3, 8)]


def test_cuda_attributes_and_blocks() -> None:
    """Launch bounds, clusters, linkage blocks, prototypes; only extern "C" kernels count."""
    source = """
    extern "C" __global__ void proto(float* x, int n);
    extern "C" {
    __device__ float helper(float a) { return a; }
    __global__ void __launch_bounds__(256, 2) __cluster_dims__(2, 1, 1) inside(int /* n, */ n) {}
    }
    __global__ void mangled(int n) {}
    extern "C" __global__ void proto(float* x, int n) { }
    template <typename T> __device__ T twice(T a) { return a * 2; }
    extern "C" __global__ void last(void) {}
    """
    found = kernels(source, "cuda")
    assert [(k.name, len(k.parameters), k.dimensions) for k in found] == [
        ("proto", 2, 3), ("inside", 1, 3), ("last", 0, 3),
    ]  # fmt: skip
    assert str(found[0]) == "proto(float* x, int n)"


def test_one_name_with_two_parameter_lists_is_refused() -> None:
    """The scan cannot tell which one the preprocessor keeps."""
    source = 'extern "C" __global__ void k(int n) {}\nextern "C" __global__ void k(float n) {}'
    with pytest.raises(PlanError, match="declared with different parameters in lines 1 and 2"):
        kernels(source, "cuda")


def test_unknown_dimension_is_refused() -> None:
    """A kernel's dimensions must be known before the launch."""
    with pytest.raises(PlanError, match="needs nd_range_kernel<1>"):
        kernels(f'extern "C" {SYCL.format("N")} void k(int n) {{}}', "sycl")


def test_comments_become_blanks() -> None:
    """Lines and columns stay; strings, raw strings and digit separators are no comments."""
    code = 'a /* b\nc */ d // e \\\nf\n"//" R"x(/* )" )x" 1\'000 \'"\' // g'
    assert strip_comments(code) == (
        'a     \n     d       \n \n"//" R"x(/* )" )x" 1\'000 \'"\'     '
    )


@pytest.mark.parametrize(
    "code",
    [
        'template <int N>\nextern "C" __global__ void k(float* out) {}',
        'extern "C" {\ntemplate <typename T> __global__ void k(T* out) {}\n}',
    ],
)
def test_template_is_refused_with_the_reason(code) -> None:
    """A kernel is found by its plain name, which a template has not."""
    with pytest.raises(PlanError, match=r"k \(line 2 of the device code\) is a template"):
        kernels(code, "cuda")


def test_template_beside_a_kernel_is_no_matter() -> None:
    """Device functions may be templates."""
    code = (
        "template <int N> __device__ float twice(float x) { return x * N; }\n"
        'extern "C" __global__ void k(float* out) { out[0] = twice<2>(1.0f); }'
    )
    assert [kernel.name for kernel in kernels(code, "cuda")] == ["k"]
