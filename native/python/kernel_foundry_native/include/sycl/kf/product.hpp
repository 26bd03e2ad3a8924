// Products of float32 matrices by register tiles over packed panels, with an epilogue.
//
//   kf::pack_panel<VECTORS, kf::Layout::NK>(panel, b, panels, n, k)
//       writes one panel, 16 * VECTORS columns of the right operand b: NK is a linear layer's
//       weight (n rows of k), KN is (k rows of n) as in `a @ b`. Launch cdiv(n, 16 * VECTORS)
//       work-groups of one work-item, in `prepare` where b is constant. `panels`: k * cdiv(n, 16) *
//       16 floats.
//   kf::Product<ROWS, VECTORS>::run(group, BLOCK, {a, panels, m, n, k}, store)
//       computes BLOCK rows of one panel: cdiv(m, BLOCK) * cdiv(n, 16 * VECTORS) work-groups of
//       one. store(row, at, v) gets each result once, `at` a place in the row: bias, activation,
//       residual and the output's format belong there.
//   kf::Tile<ROWS, VECTORS>      the register tile alone, for loops of your own:
//       tile.add(rows, b, stride, k) adds rows[r][i] * b[i * stride + column] over i < k
//
// First values: ROWS 8 and VECTORS 3 (24 sums, 32 registers) with AVX-512, 4 and 1 without;
// BLOCK a multiple of ROWS, 64 to 256: a panel is read from the cache BLOCK / ROWS times.
#pragma once

#include <kf/vector.hpp>

namespace kf {

enum class Layout { NK, KN };

// Columns of a panel, which are also its rows' stride: the last one's are what is left.
template <int VECTORS>
inline int panel_width(int panel, int n) {
  const int left = n - panel * VECTORS * WIDTH;
  return left < VECTORS * WIDTH ? left : VECTORS * WIDTH;
}

template <int VECTORS, Layout LAYOUT>
inline void pack_panel(int panel, const float* __restrict__ b, float* __restrict__ panels, int n,
                       int k) {
  const int first = panel * VECTORS * WIDTH, width = panel_width<VECTORS>(panel, n);
  float* to = panels + static_cast<size_t>(first) * k;
  for (int i = 0; i < k; ++i, to += width) {
    if constexpr (LAYOUT == Layout::KN) {
      const float* row = b + static_cast<size_t>(i) * n + first;
      for (int j = 0; j < width; j += WIDTH) {
        if (j + WIDTH <= width) {
          store(to, Whole{j}, load(row, Whole{j}));
        } else {
          store(to, Part{j, width - j}, load(row, Part{j, width - j}));
        }
      }
    } else {
      for (int j = 0; j < width; ++j) to[j] = b[static_cast<size_t>(first + j) * k + i];
    }
  }
}

template <int ROWS, int VECTORS>
struct Tile {
  Vector v[ROWS][VECTORS] = {};

  inline void add(const float* const (&rows)[ROWS], const float* __restrict__ b, int stride,
                  int k) {
    for (int i = 0; i < k; ++i, b += stride) {
      Vector right[VECTORS];
#pragma unroll
      for (int c = 0; c < VECTORS; ++c) right[c] = load(b, Whole{c * WIDTH});
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const float left = rows[r][i];
#pragma unroll
        for (int c = 0; c < VECTORS; ++c) v[r][c] += left * right[c];
      }
    }
  }

  // The first `count` columns of one vector. Rows of b that end within the matrix are read whole:
  // what is behind `count` is not stored.
  inline void add_part(const float* const (&rows)[ROWS], const float* b, int stride, int k,
                       int offset, int count) {
    static_assert(VECTORS == 1, "the last columns, a vector at a time");
    const int spare = k * stride - offset - WIDTH;
    const int whole = spare < 0 ? 0 : spare / stride + 1;
    add(rows, b, stride, whole);
    for (int i = whole; i < k; ++i) {
      const Vector right = load(b + static_cast<size_t>(i) * stride, Part{0, count});
#pragma unroll
      for (int r = 0; r < ROWS; ++r) v[r][0] += rows[r][i] * right;
    }
  }
};

struct Operands {
  const float* a;
  const float* panels;
  int m, n, k;
};

template <int ROWS, int VECTORS>
struct Product {
  template <class Store>
  static inline void run(int group, int block, Operands o, Store&& store) {
    const int count = (o.n + WIDTH * VECTORS - 1) / (WIDTH * VECTORS);
    const int panel = group % count, begin = group / count * block;
    const int end = begin + block < o.m ? begin + block : o.m;
    const int width = panel_width<VECTORS>(panel, o.n), first = panel * VECTORS * WIDTH;
    const float* b = o.panels + static_cast<size_t>(first) * o.k;
    if (width == VECTORS * WIDTH) {
      columns<VECTORS>(first, b, width, begin, end, o, store);
    } else {
      for (int j = 0; j < width; j += WIDTH) {
        columns<1>(first + j, b + j, width, begin, end, o, store, j);
      }
    }
  }

 private:
  template <int COUNT, class Store>
  static inline void columns(int first, const float* b, int stride, int begin, int end,
                             const Operands& o, Store& store, int offset = 0) {
    for (int row = begin; row < end; row += ROWS) {
      const float* rows[ROWS];  // behind the last row: that one again, and not stored
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        rows[r] = o.a + static_cast<size_t>(row + r < end ? row + r : end - 1) * o.k;
      }
      Tile<ROWS, COUNT> tile;
      const int left = o.n - first;
      if constexpr (COUNT == 1) {
        if (left < WIDTH) {
          tile.add_part(rows, b, stride, o.k, offset, left);
        } else {
          tile.add(rows, b, stride, o.k);
        }
      } else {
        tile.add(rows, b, stride, o.k);
      }
      // Through memory, so that `store` is compiled once and not for each register.
      Vector sums[ROWS * COUNT];
#pragma unroll
      for (int i = 0; i < ROWS * COUNT; ++i) sums[i] = tile.v[i / COUNT][i % COUNT];
      const int inside = row + ROWS < end ? ROWS : end - row;
#pragma nounroll
      for (int r = 0; r < inside; ++r) {
#pragma nounroll
        for (int c = 0; c < COUNT; ++c) {
          const int column = first + c * WIDTH;
          if (column + WIDTH <= o.n) {
            store(row + r, Whole{column}, sums[r * COUNT + c]);
          } else {
            store(row + r, Part{column, o.n - column}, sums[r * COUNT + c]);
          }
        }
      }
    }
  }
};

}  // namespace kf
