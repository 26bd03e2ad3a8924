"""CUDA spellings: operations, and the functions and types that kernels bring along."""

from generator_svc.recipes.cpp_operations import USES_ERF, spell

_NAMES = {"abs": "fabsf", "sqrt": "sqrtf", "log": "logf", "fmax": "fmaxf", "pow": "powf"}

_OWN = {
    "max": "fmaxf({0}, {1})",
    "min": "fminf({0}, {1})",
    "rsqrt": "rsqrtf({0})",
}

_FAST = {
    # Two units in the last place; the quotient is 0 where it is below 1e-37 anyway.
    "tanh": "(1.0f - __fdividef(2.0f, 1.0f + {exp}(2.0f * {0})))",
    "sigmoid": "__fdividef(1.0f, 1.0f + {exp}(-{0}))",
    "silu": "__fdividef({0}, 1.0f + {exp}(-{0}))",
    "gelu_tanh": "__fdividef({0}, "
    "1.0f + {exp}(-1.59576912f * ({0} + 0.044715f * {0} * {0} * {0})))",
}

ERF = """\
static __device__ __forceinline__ float recipe_erf(float x) {  // rational, float32 accuracy
  x = fminf(fmaxf(x, -4.0f), 4.0f);
  const float s = x * x;
  float p = -2.72614225801306e-10f;
  p = fmaf(p, s, 2.77068142495902e-08f);
  p = fmaf(p, s, -2.10102402082508e-06f);
  p = fmaf(p, s, -5.69250639462346e-05f);
  p = fmaf(p, s, -7.34990630326855e-04f);
  p = fmaf(p, s, -2.95459980854025e-03f);
  p = fmaf(p, s, -1.60960333262415e-02f);
  float q = -1.45660718464996e-05f;
  q = fmaf(q, s, -2.13374055278905e-04f);
  q = fmaf(q, s, -1.68282697438203e-03f);
  q = fmaf(q, s, -7.37332916720468e-03f);
  q = fmaf(q, s, -1.42647390514189e-02f);
  return __fdividef(x * p, q);
}
"""
"""Rational approximation of the error function. Source: the one that XLA and Eigen use."""

PACKS = """\
template <int N> struct Words;
template <> struct Words<1> { typedef float Word; };
template <> struct Words<2> { typedef float2 Word; };
template <> struct Words<4> { typedef float4 Word; };
typedef Words<VEC>::Word Word;
union Pack {  // VEC neighbouring elements: one access to memory
  Word word;
  float v[VEC];
};
"""

LOAD = """\
static __device__ __forceinline__ Pack load(const float* from) {
  Pack pack;
  pack.word = __ldg(reinterpret_cast<const Word*>(from));
  return pack;
}
"""

LOAD_LAST = """\
static __device__ __forceinline__ Pack load_last(const float* from) {  // first out of the cache
  Pack pack;
  pack.word = __ldcs(reinterpret_cast<const Word*>(from));
  return pack;
}
"""

STORE = """\
static __device__ __forceinline__ void store(float* to, const Pack& pack) {
  __stwb(reinterpret_cast<Word*>(to), pack.word);  // an assignment becomes VEC scalar stores
}
"""

STORE_LAST = """\
static __device__ __forceinline__ void store(float* to, const Pack& pack) {
  __stcs(reinterpret_cast<Word*>(to), pack.word);
}
"""

_JOINS = {
    "sum": ("Sum", "{0} + {1}"),
    "max": ("Maximum", "fmaxf({0}, {1})"),
    "min": ("Minimum", "fminf({0}, {1})"),
}

_WARP = """\
template <class Op, int PLACE> static __device__ __forceinline__ float over_team(float value) {
#pragma unroll
  for (int step = TEAM / 2; step > 0; step /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}
"""

_BLOCK = """\
template <class Op, int PLACE> static __device__ __forceinline__ float over_team(float value) {
  __shared__ float parts[TEAM / 32];  // one for each PLACE: no barrier before its next use
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[threadIdx.x % (TEAM / 32)];
#pragma unroll
  for (int step = TEAM / 64; step > 0; step /= 2) {
    value = Op::join(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}
"""

_TREE = """\
template <class Op, int PLACE> static __device__ __forceinline__ float over_team(float value) {
  __shared__ float parts[TEAM];
  parts[threadIdx.x] = value;
  __syncthreads();
#pragma unroll
  for (int step = TEAM / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      parts[threadIdx.x] = Op::join(parts[threadIdx.x], parts[threadIdx.x + step]);
    }
    __syncthreads();
  }
  return parts[0];
}
"""

TEAMS = {"warp": _WARP, "block": _BLOCK, "tree": _TREE}
"""How the threads that share a row reduce their values; each gets the result."""


class CudaText:
    """Spells operations with the chosen exponential and error function.

    Args:
        fast: Use the hardware's exponential and quotient instead of the library's.
        polynomial_erf: Use our own error function instead of the library's.
    """

    def __init__(self, *, fast: bool, polynomial_erf: bool) -> None:
        self._own = {**_OWN, **(_FAST if fast else {})}
        self._names = {
            **_NAMES,
            "exp": "__expf" if fast else "expf",
            "erf": "recipe_erf" if polynomial_erf else "erff",
        }

    @property
    def exp(self) -> str:
        """Name of the exponential."""
        return self._names["exp"]

    def apply(self, operation: str, operands: list[str], element_type: str) -> str:
        """Return the expression of an operation on values of `element_type`."""
        return spell(operation, operands, element_type, self._names, self._own)

    def functions(self, used: frozenset[str]) -> str:
        """Return the functions that the operations in `used` need."""
        return ERF if used & USES_ERF and self._names["erf"] == "recipe_erf" else ""


def memory_functions(*, streaming: bool) -> str:
    """Return packs and their accesses; with `streaming`, what is used once leaves the cache."""
    return PACKS + LOAD + (LOAD_LAST + STORE_LAST if streaming else STORE)


def over_team(kind: str, place: int, value: str) -> str:
    """Return the reduction of `value` over the threads that share a row."""
    return f"over_team<{_JOINS[kind][0]}, {place}>({value})"


def team_functions(kinds: frozenset[str], team: str) -> str:
    """Return what `over_team` needs for the reductions `kinds`."""
    joins = "".join(
        f"struct {name} {{\n  static __device__ __forceinline__ float join(float a, float b) "
        f"{{ return {text.format('a', 'b')}; }}\n}};\n"
        for kind, (name, text) in _JOINS.items()
        if kind in kinds
    )
    return joins + TEAMS[team]


def join(kind: str, accumulator: str, value: str) -> str:
    """Return the statement that takes `value` into `accumulator`."""
    return f"{accumulator} = {_JOINS[kind][1].format(accumulator, value)};"
