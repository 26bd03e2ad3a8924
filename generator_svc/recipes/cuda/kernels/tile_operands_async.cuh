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
{% if right_kind == "Across" %}

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
{% endif %}
