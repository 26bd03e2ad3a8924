// Matrix products on Hopper's tensor cores, with whatever happens to a result before it is stored.
//
// Product<Element, ...>::run: out = A B of __half or __nv_bfloat16, sums in float32.
// SplitProduct<...>::run: the same of float32, from the parts and exponents of kf/split.hpp.
//
// A kernel is one call, launched with min(tiles, device.compute_units) blocks of THREADS threads
// and SHARED bytes of dynamic shared memory, where
//   SHARED = STAGES * PARTS * 128 * (TILE_M + TILE_N) + 2048, PARTS 1 (Product) or 2
//   (SplitProduct).
// One warp copies tiles ahead (TMA, STAGES tiles deep), TILE_M / 64 warp groups multiply.
//
//   store(row, column, float4 v): four neighbours of a row of the result; column is a multiple
//   of 4. Called once for each such four, unless all are outside. Rows count over all batches.
//   Where n is no multiple of 4, the last ones of v may be outside: kf::store4 of kf/pack.hpp
//   knows.
#pragma once

#include <kf/tensor_map.hpp>
#include <kf/wgmma.hpp>

namespace kf {

// How an operand lies in memory. A: MK or KM. B: NK (as the weight of a linear layer) or KN. The
// last letter is contiguous, and its size a multiple of 8.
enum class Layout { MK, KM, NK, KN };

template <class Element>
struct IsBfloat16;
template <>
struct IsBfloat16<__half> {
  static constexpr bool value = false;
};
template <>
struct IsBfloat16<__nv_bfloat16> {
  static constexpr bool value = true;
};

template <class Element, int TILE_M_, int TILE_N_, int STAGES_, Layout A_LAYOUT, Layout B_LAYOUT,
          int PARTS>
struct ProductOf {
  static_assert(A_LAYOUT == Layout::MK || A_LAYOUT == Layout::KM, "A is MK or KM");
  static_assert(B_LAYOUT == Layout::NK || B_LAYOUT == Layout::KN, "B is NK or KN");
  static_assert(TILE_M_ == 64 || TILE_M_ == 128 || TILE_M_ == 192, "TILE_M is 64, 128 or 192");

  static constexpr int TILE_M = TILE_M_, TILE_N = TILE_N_, STAGES = STAGES_;
  static constexpr int GROUPS = TILE_M / 64;  // warp groups that multiply
  static constexpr int THREADS = 128 * (GROUPS + 1);
  static constexpr int TILE_K = 64;
  static constexpr int STRIP = 8;  // rows of tiles that run together, for the L2
  static constexpr unsigned A_BYTES = TILE_M * 128, B_BYTES = TILE_N * 128;
  static constexpr unsigned STAGE_BYTES = PARTS * (A_BYTES + B_BYTES);
  static constexpr bool IS_BFLOAT16 = IsBfloat16<Element>::value;
  static constexpr int A_ALONG_K = A_LAYOUT == Layout::KM, B_ALONG_K = B_LAYOUT == Layout::KN;
  static constexpr int SUMS = TILE_N / 2;

  // What one kernel works on.
  struct Operands {
    const Element *a, *b;  // batches x PARTS x matrix
    int* maps;             // 64 for each block, 128-byte aligned scratch
    int m, n, k, batches;
    int b_columns = 0;  // of a row of B (NK) in memory, where it is not k
  };

  // Where B's values for a tile of k begin: k in its row, and rows below those of the tile.
  struct AlongK {
    int k = 0, down = 0;

    __device__ __forceinline__ void advance() { k += TILE_K; }
  };

  struct Tile {
    int row, column, batch;  // in values, of this block
  };

  struct Barriers {
    unsigned long long full[STAGES], empty[STAGES];
  };

  // `path`: where each tile's walk over B (NK) begins; it advances by TILE_K values of k.
  template <class Store, class Path = AlongK>
  static __device__ __forceinline__ void run(const Operands& of, const Store& store,
                                             const Path& path = Path()) {
    extern __shared__ __align__(1024) unsigned char kf_shared[];
    unsigned char* const tiles = reinterpret_cast<unsigned char*>(
        (reinterpret_cast<size_t>(kf_shared) + 1023) / 1024 * 1024);
    TensorMap* const work = reinterpret_cast<TensorMap*>(tiles + STAGES * STAGE_BYTES);
    Barriers& barriers = *reinterpret_cast<Barriers*>(work + 2);
    TensorMap* const maps = reinterpret_cast<TensorMap*>(of.maps) + 2 * blockIdx.x;
    if (threadIdx.x < 32) {
      make_map(maps, work, a_of(of));
      make_map(maps + 1, work + 1, b_of(of));
    }
    if (threadIdx.x == 32) {
      for (int s = 0; s < STAGES; ++s) {
        init_barrier(shared_address(&barriers.full[s]), 1);
        init_barrier(shared_address(&barriers.empty[s]), 4 * GROUPS);
      }
      publish_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      if constexpr (GROUPS > 1) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(GROUPS == 2 ? 40 : 32));
      }
      if (threadIdx.x == 0) copy(of, maps, shared_address(tiles), barriers, path);
      __syncwarp();
    } else {
      if constexpr (GROUPS > 1) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(GROUPS == 2 ? 232 : 160));
      }
      compute(of, shared_address(tiles), barriers, store);
    }
  }

 private:
  // Values of a row as it lies in memory: split operands are padded.
  static __device__ __forceinline__ int row_of(int size) {
    return PARTS == 1 ? size : (size + 7) / 8 * 8;
  }

  static __device__ __forceinline__ Matrices a_of(const Operands& of) {
    const bool turned = A_ALONG_K;
    return {of.a,
            IS_BFLOAT16,
            row_of(turned ? of.m : of.k),
            turned ? of.k : of.m,
            of.batches * PARTS,
            turned ? TILE_K : TILE_M};
  }

  static __device__ __forceinline__ Matrices b_of(const Operands& of) {
    const bool turned = B_ALONG_K;
    return {of.b,
            IS_BFLOAT16,
            row_of(turned         ? of.n
                   : of.b_columns ? of.b_columns
                                  : of.k),
            turned ? of.k : of.n,
            of.batches * PARTS,
            turned ? TILE_K : TILE_N};
  }

  // Calls `body` for each tile of this block.
  template <class Body>
  static __device__ __forceinline__ void for_each_tile(const Operands& of, const Body& body) {
    const int high = (of.m + TILE_M - 1) / TILE_M;
    const int across = (of.n + TILE_N - 1) / TILE_N;
    const int each = high * across, all = each * of.batches;
    for (int index = blockIdx.x; index < all; index += gridDim.x) {
      const int batch = index / each, in_batch = index - batch * each;
      const int strip = in_batch / (STRIP * across), first = strip * STRIP;
      const int rows = min(STRIP, high - first), rest = in_batch - strip * (STRIP * across);
      const int column = rest / rows, row = first + rest - column * rows;
      body(Tile{row * TILE_M, column * TILE_N, batch});
    }
  }

  // One thread: keeps the stages full.
  template <class Path>
  static __device__ __forceinline__ void copy(const Operands& of, const TensorMap* maps,
                                              unsigned tiles, Barriers& barriers,
                                              const Path& path) {
    acquire_map(maps);
    acquire_map(maps + 1);
    RingPlace<STAGES> place;
    for_each_tile(of, [&](const Tile& tile) {
      Path at = path;
      for (int k = 0; k < of.k; k += TILE_K, at.advance()) {
        const unsigned full = shared_address(&barriers.full[place.stage]);
        wait(shared_address(&barriers.empty[place.stage]), place.parity ^ 1);
        arrive_expecting(full, STAGE_BYTES);
        unsigned to = tiles + place.stage * STAGE_BYTES;
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
          const int plane = tile.batch * PARTS + part;
          if constexpr (A_ALONG_K) {
            for (int i = 0; i < TILE_M / 64; ++i)
              copy_box(to + i * 8192, maps, tile.row + 64 * i, k, plane, full);
          } else {
            copy_box(to, maps, k, tile.row, plane, full);
          }
          to += A_BYTES;
        }
#pragma unroll
        for (int part = 0; part < PARTS; ++part) {
          const int plane = tile.batch * PARTS + part;
          if constexpr (B_ALONG_K) {
            for (int i = 0; i < TILE_N / 64; ++i)
              copy_box(to + i * 8192, maps + 1, tile.column + 64 * i, k, plane, full);
          } else {
            copy_box(to, maps + 1, at.k, tile.column + at.down, plane, full);
          }
          to += B_BYTES;
        }
        place.next();
      }
    });
  }

  template <class Store>
  static __device__ __forceinline__ void compute(const Operands& of, unsigned tiles,
                                                 Barriers& barriers, const Store& store) {
    const int group = threadIdx.x / 128 - 1;
    RingPlace<STAGES> place;
    for_each_tile(of, [&](const Tile& tile) {
      float sum[SUMS];
      if constexpr (PARTS == 1) {
        unsigned before = 0;
        for (int k = 0; k < of.k; k += TILE_K) {
          wait(shared_address(&barriers.full[place.stage]), place.parity);
          const unsigned at = tiles + place.stage * STAGE_BYTES;
          begin_products();
          multiply_parts(sum, at + group * 8192, at + A_BYTES, k > 0);
          commit_products();
          wait_products<1>();
          if (k > 0) arrive_as_warp(before);
          before = shared_address(&barriers.empty[place.stage]);
          place.next();
        }
        wait_products<0>();
        hold(sum);
        arrive_as_warp(before);
      } else {
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sum[i] = 0.0f;
        for (int k = 0; k < of.k; k += TILE_K) {
          wait(shared_address(&barriers.full[place.stage]), place.parity);
          const unsigned a = tiles + place.stage * STAGE_BYTES + group * 8192;
          const unsigned b = tiles + place.stage * STAGE_BYTES + 2 * A_BYTES;
          float part[SUMS];
          begin_products();
          multiply_parts(part, a + A_BYTES, b, 0);  // small by large first
          multiply_parts(part, a, b + B_BYTES, 1);
          multiply_parts(part, a, b, 1);
          commit_products();
          wait_products<0>();
          hold(part);
          arrive_as_warp(shared_address(&barriers.empty[place.stage]));
          place.next();
#pragma unroll
          for (int i = 0; i < SUMS; ++i) sum[i] += part[i];
        }
      }
      hand_out(of, tile, group, sum, store);
    });
  }

  static __device__ __forceinline__ void multiply_parts(float (&d)[SUMS], unsigned a, unsigned b,
                                                        int keep) {
    const unsigned long long left = operand(a, 8192), right = operand(b, 8192);
#pragma unroll
    for (int i = 0; i < TILE_K / 16; ++i) {
      multiply<TILE_N, IS_BFLOAT16, A_ALONG_K, B_ALONG_K>(
          d, left + i * (A_ALONG_K ? 128 : 2), right + i * (B_ALONG_K ? 128 : 2), keep | i);
    }
  }

  template <class Store>
  static __device__ __forceinline__ void hand_out(const Operands& of, const Tile& tile, int group,
                                                  const float (&sum)[SUMS], const Store& store) {
    each_four<TILE_N>(sum, [&](int in_row, int in_column, float4 v) {
      const int row = tile.row + group * 64 + in_row, column = tile.column + in_column;
      if (row < of.m && column < of.n) store(tile.batch * of.m + row, column, v);
    });
  }
};

template <class Element, int TILE_M, int TILE_N, int STAGES, Layout A_LAYOUT = Layout::MK,
          Layout B_LAYOUT = Layout::NK>
using Product = ProductOf<Element, TILE_M, TILE_N, STAGES, A_LAYOUT, B_LAYOUT, 1>;

}  // namespace kf
