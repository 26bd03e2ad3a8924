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
{% if right_kind == "Across" %}

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
{% endif %}
