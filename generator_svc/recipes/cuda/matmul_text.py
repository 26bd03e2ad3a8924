"""CUDA bodies of matrix products; `@NAME@` marks what the recipe fills in.

Sizes are macros of the launch plan: ROWS, COLS, DEPTH of the product, and the tiles' edges.
"""

KERNEL = "product_tiles"

SUM_KERNEL = "sum_parts"

ITEM = """\
extern "C" __global__ void __launch_bounds__(BLOCK) product_tiles(@PARAMETERS@) {
  const size_t at = (size_t)blockIdx.x * BLOCK + threadIdx.x;
  if (at >= (size_t)ROWS * COLS) return;
  const int m = at / COLS, n = at % COLS;
  float sum = 0.0f;
  for (int k = 0; k < DEPTH; ++k) {
    sum = fmaf(@LEFT@[(size_t)m * DEPTH + k], @RIGHT@[@RIGHT_AT@], sum);
  }
  Pack product;
  product.v[0] = sum;
  finish(product, at, n@CALL@);
}
"""

SHARED = """\
extern "C" __global__ void __launch_bounds__(TILE * TILE) product_tiles(@PARAMETERS@) {
  __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
  float sum = 0.0f;
  for (int base = 0; base < DEPTH; base += TILE) {
    {
      const int m = row, k = base + x;
      left[y][x] = m < ROWS && k < DEPTH ? @LEFT@[(size_t)m * DEPTH + k] : 0.0f;
    }
    {
      const int n = @STAGED_N@, k = @STAGED_K@;
      right[k - base][n - blockIdx.x * TILE] = n < COLS && k < DEPTH ? @RIGHT@[@RIGHT_AT@] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum = fmaf(left[y][k], right[k][x], sum);
    __syncthreads();
  }
  if (row < ROWS && column < COLS) {
    Pack product;
    product.v[0] = sum;
    finish(product, (size_t)row * COLS + column, column@CALL@);
  }
}
"""

_OPERANDS = """\
union Quad {
  float4 word;
  float v[4];
};

constexpr int PAD = 4;  // keeps rows of a tile on 16 bytes, and stores across them off one bank

// A tile of a matrix stored with the inner dimension along memory, `COUNT` rows of it.
template <int EDGE, int COUNT> struct Along {
  static constexpr int quads = EDGE * BK / 4 / THREADS;
  static_assert(EDGE * BK % (4 * THREADS) == 0, "every thread moves whole quads");
  Quad held[quads];

  // A warp takes two quads, a sector, of 16 rows: its stores then meet every bank once.
  static __device__ __forceinline__ int row_of(int at) { return at / 2 % EDGE; }
  static __device__ __forceinline__ int quad_of(int at) { return at % 2 + at / (2 * EDGE) * 2; }

  __device__ __forceinline__ void load(const float* __restrict__ from, int first, int base) {
#pragma unroll
    for (int q = 0; q < quads; ++q) {
      const int at = q * THREADS + threadIdx.x;
      const int row = first + row_of(at), k = base + quad_of(at) * 4;
      const bool inside = COUNT % EDGE == 0 || row < COUNT;
      const float* source = from + (size_t)row * DEPTH + k;
      if (DEPTH % 4 == 0) {
        held[q].word = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (inside && (DEPTH % BK == 0 || k < DEPTH)) held[q].word = __ldg((const float4*)source);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          held[q].v[j] = inside && (DEPTH % BK == 0 || k + j < DEPTH) ? __ldg(source + j) : 0.0f;
        }
      }
    }
  }

  __device__ __forceinline__ void store(float (*to)[EDGE + PAD]) const {
#pragma unroll
    for (int q = 0; q < quads; ++q) {
      const int at = q * THREADS + threadIdx.x;
#pragma unroll
      for (int j = 0; j < 4; ++j) to[quad_of(at) * 4 + j][row_of(at)] = held[q].v[j];
    }
  }
};
@ACROSS@"""

ACROSS = """\

// A tile of a matrix stored with the inner dimension across memory, rows of `COUNT` elements.
template <int EDGE, int COUNT> struct Across {
  static constexpr int quads = EDGE * BK / 4 / THREADS;
  static_assert(EDGE * BK % (4 * THREADS) == 0, "every thread moves whole quads");
  Quad held[quads];

  __device__ __forceinline__ void load(const float* __restrict__ from, int first, int base) {
#pragma unroll
    for (int q = 0; q < quads; ++q) {
      const int at = q * THREADS + threadIdx.x;
      const int k = base + at / (EDGE / 4), column = first + at % (EDGE / 4) * 4;
      const bool inside = DEPTH % BK == 0 || k < DEPTH;
      const float* source = from + (size_t)k * COUNT + column;
      if (COUNT % 4 == 0) {
        held[q].word = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (inside && (COUNT % EDGE == 0 || column < COUNT)) {
          held[q].word = __ldg((const float4*)source);
        }
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          held[q].v[j] = inside && column + j < COUNT ? __ldg(source + j) : 0.0f;
        }
      }
    }
  }

  __device__ __forceinline__ void store(float (*to)[EDGE + PAD]) const {
#pragma unroll
    for (int q = 0; q < quads; ++q) {
      const int at = q * THREADS + threadIdx.x;
      *(float4*)&to[at / (EDGE / 4)][at % (EDGE / 4) * 4] = held[q].word;
    }
  }
};
"""

ASYNC_COPY = """\
static __device__ __forceinline__ void copy_async(float* to, const float* from, bool inside) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  const int count = inside ? 4 : 0;  // the rest of the four bytes is filled with zeros
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(place), "l"(from), "r"(count)
               : "memory");
}
static __device__ __forceinline__ void copy_quad_async(float* to, const float* from, bool inside) {
  const unsigned place = (unsigned)__cvta_generic_to_shared(to);
  const int count = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(count)
               : "memory");
}
static __device__ __forceinline__ void end_of_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
static __device__ __forceinline__ void wait_for_copies() {  // all groups but the newest STAGES - 2
  asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
}
"""
"""Copies from global to shared memory that no register holds."""

_ASYNC_OPERANDS = """\
union Quad {
  float4 word;
  float v[4];
};

constexpr int PAD = 4;  // keeps rows of a tile on 16 bytes, and stores across them off one bank

// A tile of a matrix stored with the inner dimension along memory, `COUNT` rows of it.
template <int EDGE, int COUNT> struct Along {
  static __device__ __forceinline__ void copy(float (*to)[EDGE + PAD], const float* from,
                                              int first, int base) {
    static_assert(EDGE * BK % THREADS == 0, "every thread copies as many");
#pragma unroll
    for (int q = 0; q < EDGE * BK / THREADS; ++q) {
      // A warp takes 8 elements of 4 rows: its stores then meet every bank once.
      const int at = q * THREADS + threadIdx.x;
      const int row = at / 8 % EDGE, k = at % 8 + at / (8 * EDGE) * 8;
      const bool inside = (COUNT % EDGE == 0 || first + row < COUNT) &&
                          (DEPTH % BK == 0 || base + k < DEPTH);
      const float* source = inside ? from + (size_t)(first + row) * DEPTH + base + k : from;
      copy_async(&to[k][row], source, inside);
    }
  }
};
@ACROSS@"""

ASYNC_ACROSS = """\

// A tile of a matrix stored with the inner dimension across memory, rows of `COUNT` elements.
template <int EDGE, int COUNT> struct Across {
  static __device__ __forceinline__ void copy(float (*to)[EDGE + PAD], const float* from,
                                              int first, int base) {
    constexpr int width = COUNT % 4 == 0 ? 4 : 1;
    static_assert(EDGE * BK % (4 * THREADS) == 0, "every thread copies as many");
#pragma unroll
    for (int q = 0; q < EDGE * BK / (width * THREADS); ++q) {
      const int at = (q * THREADS + threadIdx.x) * width, k = at / EDGE, column = at % EDGE;
      const bool inside = (COUNT % EDGE == 0 || first + column < COUNT) &&
                          (DEPTH % BK == 0 || base + k < DEPTH);
      const float* source = inside ? from + (size_t)(base + k) * COUNT + first + column : from;
      if (width == 4) copy_quad_async(&to[k][column], source, inside);
      else copy_async(&to[k][column], source, inside);
    }
  }
};
"""

# Lanes of a warp are 4 x 8; a thread's rows and columns come in fours, so that fragments are quads
# that lie side by side. Tiles are numbered so that GROUP of them below each other share the cache.
_PLACE = """\
  constexpr int down = (ROWS + BM - 1) / BM, across = (COLS + BN - 1) / BN;
  const int group = blockIdx.x / (GROUP * across), inner = blockIdx.x % (GROUP * across);
  const int height = min(GROUP, down - group * GROUP);
  const int m0 = (group * GROUP + inner % height) * BM, n0 = inner / height * BN;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int my_m = warp / (BN / (8 * TN)) * (4 * TM) + lane / 8 * 4;
  const int my_n = warp % (BN / (8 * TN)) * (8 * TN) + lane % 8 * 4;
  constexpr int tiles = (DEPTH + BK - 1) / BK, share = (tiles + SPLIT - 1) / SPLIT;
  const int first = blockIdx.y * share, last = min(first + share, tiles);
  float sums[TM][TN] = {};
"""

_MULTIPLY = """\
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      Quad a[TM / 4], b[TN / 4];
#pragma unroll
      for (int i = 0; i < TM / 4; ++i) a[i].word = *(const float4*)&left[now][k][my_m + i * 16];
#pragma unroll
      for (int j = 0; j < TN / 4; ++j) b[j].word = *(const float4*)&right[now][k][my_n + j * 32];
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
          sums[i][j] = fmaf(a[i / 4].v[i % 4], b[j / 4].v[j % 4], sums[i][j]);
        }
      }
    }
"""

_WRITE = """\
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = m0 + my_m + i / 4 * 16 + i % 4;
    if (ROWS % BM != 0 && m >= ROWS) continue;
#pragma unroll
    for (int j = 0; j < TN; j += VEC) {
      const int n = n0 + my_n + j / 4 * 32 + j % 4;
      if (COLS % BN != 0 && n >= COLS) continue;
      Pack product;
#pragma unroll
      for (int e = 0; e < VEC; ++e) product.v[e] = sums[i][j + e];
      const size_t at = (size_t)m * COLS + n;
      @FINISH@
    }
  }
}
"""

_HEAD = """\
typedef Along<BM, ROWS> Left;
typedef @RIGHT_KIND@<BN, COLS> Right;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) product_tiles(@PARAMETERS@) {
  extern __shared__ float4 staged[];
  auto left = reinterpret_cast<float (*)[BK][BM + PAD]>(staged);
  auto right = reinterpret_cast<float (*)[BK][BN + PAD]>(left + STAGES);
"""

TILES = (
    _OPERANDS
    + _HEAD
    + _PLACE
    + """\
  Left next_left;
  Right next_right;
  if (first < last) {
    next_left.load(@LEFT@, m0, first * BK);
    next_right.load(@RIGHT@, n0, first * BK);
    next_left.store(left[0]);
    next_right.store(right[0]);
  }
  __syncthreads();
#pragma unroll 1
  for (int tile = first; tile < last; ++tile) {
    const int now = (tile - first) % STAGES;
    if (tile + 1 < last) {  // on its way while this tile is multiplied
      next_left.load(@LEFT@, m0, (tile + 1) * BK);
      next_right.load(@RIGHT@, n0, (tile + 1) * BK);
    }
"""
    + _MULTIPLY
    + """\
    if (tile + 1 < last) {
      next_left.store(left[(tile + 1 - first) % STAGES]);
      next_right.store(right[(tile + 1 - first) % STAGES]);
    }
    __syncthreads();
  }
"""
    + _WRITE
)
"""Register tiles; the next tile passes through registers."""

ASYNC_TILES = (
    ASYNC_COPY
    + _ASYNC_OPERANDS
    + _HEAD
    + _PLACE
    + """\
#pragma unroll
  for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
    if (first + ahead < last) {
      Left::copy(left[ahead], @LEFT@, m0, (first + ahead) * BK);
      Right::copy(right[ahead], @RIGHT@, n0, (first + ahead) * BK);
    }
    end_of_copies();
  }
#pragma unroll 1
  for (int tile = first; tile < last; ++tile) {
    const int now = (tile - first) % STAGES, coming = tile + STAGES - 1;
    wait_for_copies();
    __syncthreads();
    if (coming < last) {
      Left::copy(left[(coming - first) % STAGES], @LEFT@, m0, coming * BK);
      Right::copy(right[(coming - first) % STAGES], @RIGHT@, n0, coming * BK);
    }
    end_of_copies();
"""
    + _MULTIPLY
    + """\
  }
"""
    + _WRITE
)
"""Register tiles; STAGES - 1 tiles are copied ahead, past the registers."""

SUM_PARTS = """\
extern "C" __global__ void __launch_bounds__(256) sum_parts(@SUM_PARAMETERS@) {
  const size_t at = ((size_t)blockIdx.x * 256 + threadIdx.x) * VEC;
  if (at >= (size_t)ROWS * COLS) return;
  Pack product = load(parts + at);
#pragma unroll
  for (int part = 1; part < SPLIT; ++part) {
    const Pack more = load(parts + (size_t)part * ROWS * COLS + at);
#pragma unroll
    for (int j = 0; j < VEC; ++j) product.v[j] += more.v[j];
  }
  finish(product, at, at % COLS@CALL@);
}
"""
"""Adds the parts of a product whose inner dimension was split over blocks."""
