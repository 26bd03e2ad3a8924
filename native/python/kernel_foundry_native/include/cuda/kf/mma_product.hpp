// Matrix products by mma.sync, for tensor cores without wgmma: sm_80 and newer, 8-bit operands from
// sm_89 on. On sm_90 kf/product.hpp is faster.
//
// MmaProduct<Element, TILE_M, TILE_N, STAGES, A, B, WARP_N>::run: out = A B as kf::Product has it,
// of 16 or 8 bits, with the same layouts and the same `store`, and no maps. Launch any number of
// blocks up to the number of tiles, best two a multiprocessor, of THREADS threads
// = TILE_M / 64 * (TILE_N / WARP_N) * 32, with
//   STAGES * 128 * (TILE_M + TILE_N) + 1024 bytes of dynamic shared memory.
// A warp has 64 x WARP_N sums, of 8-bit operands to some 14 bits where tensor cores keep no more.
// All threads copy tiles STAGES - 1 ahead (cp.async).
#pragma once

#include <kf/copy_async.hpp>
#include <kf/layout.hpp>
#include <kf/mma.hpp>
#include <kf/schedule.hpp>
#include <kf/sums.hpp>

namespace kf {

template <class Element, int TILE_M, int TILE_N, int STAGES, Layout A_LAYOUT = Layout::MK,
          Layout B_LAYOUT = Layout::NK, int WARP_N = 64>
struct MmaProduct {
  static_assert(A_LAYOUT == Layout::MK || A_LAYOUT == Layout::KM, "A is MK or KM");
  static_assert(B_LAYOUT == Layout::NK || B_LAYOUT == Layout::KN, "B is NK or KN");
  static_assert(BYTES<Element> <= 2, "operands have 16 or 8 bits; TF32 is kf::Product's");
  static_assert(BYTES<Element> == 2 || (A_LAYOUT == Layout::MK && B_LAYOUT == Layout::NK),
                "8-bit operands are MK and NK");
  static_assert(TILE_M == 64 || TILE_M == 128 || TILE_M == 256, "TILE_M is 64, 128 or 256");
  static_assert(TILE_N == 64 || TILE_N == 128 || TILE_N == 256, "TILE_N is 64, 128 or 256");
  static_assert(WARP_N == 32 || WARP_N == 64, "WARP_N is 32 or 64");
  static_assert(STAGES >= 2, "a stage is copied while another is multiplied");

  static constexpr int ACROSS = TILE_N / WARP_N;
  static constexpr int THREADS = TILE_M / 64 * ACROSS * 32;
  static_assert(THREADS <= 512, "a block has 16 warps at most");
  static constexpr int TILE_K = LINE<Element>;
  static constexpr unsigned A_BYTES = TILE_M * 128, STAGE_BYTES = A_BYTES + TILE_N * 128;
  static constexpr bool A_ALONG_K = A_LAYOUT == Layout::KM, B_ALONG_K = B_LAYOUT == Layout::KN;

  struct Operands {
    const Element *a, *b;
    int m, n, k, batches;
  };

  template <class Store>
  static __device__ __forceinline__ void run(const Operands& of, const Store& store) {
    extern __shared__ __align__(1024) unsigned char kf_shared[];
    const unsigned tiles =
        (static_cast<unsigned>(__cvta_generic_to_shared(kf_shared)) + 1023) / 1024 * 1024;
    const int warp = threadIdx.x / 32;
    const int down = warp / ACROSS * 64, right = warp % ACROSS * WARP_N;
    const TileOrder<TILE_M, TILE_N> order(of.m, of.n, of.batches);
    const int steps = (of.k + TILE_K - 1) / TILE_K;
    Persistent(order.count, steps).for_each([&](const Share& share) {
      const Tile tile = order.at(share.tile);
      float sum[4][WARP_N / 2];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < WARP_N / 2; ++j) sum[i][j] = 0.0f;
      }
      for (int ahead = 0; ahead < STAGES - 1; ++ahead) copy(of, tile, ahead, steps, tiles);
      for (int step = 0; step < steps; ++step) {
        wait_copies<STAGES - 2>();
        __syncthreads();
        copy(of, tile, step + STAGES - 1, steps, tiles);
        const unsigned a = tiles + step % STAGES * STAGE_BYTES;
        multiply_stage(sum, a, a + A_BYTES, down, right);
      }
      __syncthreads();  // the next tile's copies write where others may still read
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        each_four_of_warp<WARP_N>(sum[i], [&](int in_row, int in_column, float4 v) {
          const int row = tile.row + down + 16 * i + in_row;
          const int column = tile.column + right + in_column;
          if (row < of.m && column < of.n) store(tile.batch * of.m + row, column, v);
        });
      }
    });
  }

 private:
  // Begins to copy a step's tiles; a group even where there is nothing left, for `wait_copies`.
  static __device__ __forceinline__ void copy(const Operands& of, const Tile& tile, int step,
                                              int steps, unsigned tiles) {
    if (step < steps) {
      const unsigned to = tiles + step % STAGES * STAGE_BYTES;
      const size_t batch = tile.batch;
      copy_operand<TILE_M, A_ALONG_K>(to, of.a + batch * of.m * of.k, tile.row, of.m, of.k, step);
      copy_operand<TILE_N, B_ALONG_K>(to + A_BYTES, of.b + batch * of.n * of.k, tile.column, of.n,
                                      of.k, step);
    }
    commit_copies();
  }

  // `size`: m or n, of which SIDE values from `first` on are copied, for TILE_K values of k.
  template <int SIDE, bool IS_ALONG_K>
  static __device__ __forceinline__ void copy_operand(unsigned to, const Element* from, int first,
                                                      int size, int k, int step) {
    constexpr int LINES = THREADS / 8;  // that all threads copy at a time
    const int own = threadIdx.x / 8, piece = threadIdx.x % 8;
    const int rows = IS_ALONG_K ? k : size, columns = IS_ALONG_K ? size : k;
    int row = (IS_ALONG_K ? step * TILE_K : first) + own;
    int column = (IS_ALONG_K ? first : step * TILE_K) + piece * (16 / BYTES<Element>);
    const Element* at = from + static_cast<size_t>(row) * columns + column;
#pragma unroll
    for (int i = 0; i < SIDE / LINES; ++i) {
      copy_16(to + line_piece(own + i * LINES, piece), at, row < rows && column < columns);
      row += LINES;
      at += static_cast<size_t>(LINES) * columns;
      if (IS_ALONG_K && (i + 1) * LINES % 64 == 0) {  // 64 lines for each 64 values of m or n
        row -= 64;
        column += 64;
        at += 64 - static_cast<long long>(64) * columns;
      }
    }
  }

  struct Fragments {
    unsigned left[4][4], right[WARP_N / 16][4];

    // Those of 32 bytes of k.
    __device__ __forceinline__ void load(unsigned a, unsigned b, int down, int across, int step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (A_ALONG_K) {
          load_left_columns(left[i], a + down * 128, 16 * i, step);
        } else {
          load_left_rows(left[i], a, down + 16 * i, step);
        }
      }
#pragma unroll
      for (int j = 0; j < WARP_N / 16; ++j) {
        const int column = across + 16 * j;
        if constexpr (B_ALONG_K) {
          load_right_columns(right[j], b + column / 64 * 8192, column % 64, step);
        } else {
          load_right_rows(right[j], b, column, step);
        }
      }
    }
  };

  static __device__ __forceinline__ void multiply_stage(float (&sum)[4][WARP_N / 2], unsigned a,
                                                        unsigned b, int down, int across) {
    Fragments of[2];
    of[0].load(a, b, down, across, 0);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      if (step < 3) of[(step + 1) % 2].load(a, b, down, across, step + 1);
      const Fragments& now = of[step % 2];
#pragma unroll
      for (int j = 0; j < WARP_N / 16; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          multiply_fragments<Element>(sum[i] + 8 * j, now.left[i], now.right[j][0],
                                      now.right[j][1]);
          multiply_fragments<Element>(sum[i] + 8 * j + 4, now.left[i], now.right[j][2],
                                      now.right[j][3]);
        }
      }
    }
  }
};

}  // namespace kf
