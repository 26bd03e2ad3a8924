// Matrix products on Hopper's tensor cores, with whatever happens to a result before it is stored.
//
// Product<Element, ...>::run: out = A B of an Element of kf/formats.hpp, sums in float32.
// SplitProduct<...>::run: the same of float32, from the parts and exponents of kf/split.hpp.
//
// A kernel is one call, launched with min(tiles, device.compute_units) blocks of THREADS threads
// and SHARED bytes of dynamic shared memory, where
//   SHARED = STAGES * PARTS * 128 * (TILE_M + TILE_N) + 2048, PARTS 1 (Product) or 2
//   (SplitProduct).
// One warp copies tiles ahead (TMA, STAGES tiles deep), TILE_M / 64 warp groups multiply.
// kf/stream_k.hpp deals out k where there are few tiles.
//
//   store(row, column, float4 v): four neighbours of a row of the result; column is a multiple
//   of 4. Called once for each such four, unless all are outside. Rows count over all batches.
//   Where n is no multiple of 4, the last ones of v may be outside: kf::store4 of kf/pack.hpp
//   knows.
#pragma once

#include <kf/layout.hpp>
#include <kf/schedule.hpp>
#include <kf/tensor_map.hpp>
#include <kf/wgmma.hpp>

namespace kf {

// Where sums over k grow: in the tensor cores, which round them towards zero, to 14 bits those of
// 8-bit operands; or in registers, to which the tensor cores' sums are added every 128 bytes of k.
enum class Sums { CORES, REGISTERS };

template <class Element, int TILE_M_, int TILE_N_, int STAGES_, Layout A_LAYOUT, Layout B_LAYOUT,
          int PARTS, Sums SUMS_IN>
struct ProductOf {
  static_assert(A_LAYOUT == Layout::MK || A_LAYOUT == Layout::KM, "A is MK or KM");
  static_assert(B_LAYOUT == Layout::NK || B_LAYOUT == Layout::KN, "B is NK or KN");
  static_assert(TILE_M_ == 64 || TILE_M_ == 128 || TILE_M_ == 192, "TILE_M is 64, 128 or 192");
  static_assert(BYTES<Element> == 2 || (A_LAYOUT == Layout::MK && B_LAYOUT == Layout::NK),
                "float and 8-bit operands are MK and NK");

  static constexpr int TILE_M = TILE_M_, TILE_N = TILE_N_, STAGES = STAGES_;
  static constexpr int GROUPS = TILE_M / 64;  // warp groups that multiply
  static constexpr int THREADS = 128 * (GROUPS + 1);
  static constexpr int TILE_K = LINE<Element>;
  static constexpr unsigned A_BYTES = TILE_M * 128, B_BYTES = TILE_N * 128;
  static constexpr unsigned STAGE_BYTES = PARTS * (A_BYTES + B_BYTES);
  static constexpr int A_ALONG_K = A_LAYOUT == Layout::KM, B_ALONG_K = B_LAYOUT == Layout::KN;
  static constexpr int SUMS = TILE_N / 2;
  using Order = TileOrder<TILE_M, TILE_N>;

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

  struct Barriers {
    unsigned long long full[STAGES], empty[STAGES];
  };

  static __device__ __forceinline__ int tiles_of(const Operands& of) {
    return Order(of.m, of.n, of.batches).count;
  }

  static __device__ __forceinline__ int steps_of(const Operands& of) {
    return (of.k + TILE_K - 1) / TILE_K;
  }

  // `path`: where each tile's walk over B (NK) begins; it advances by TILE_K values of k.
  template <class Store, class Path = AlongK>
  static __device__ __forceinline__ void run(const Operands& of, const Store& store,
                                             const Path& path = Path()) {
    run_shares(of, Persistent(tiles_of(of), steps_of(of)), store, path,
               [](int, int, int, float4) {});
  }

  // `store_part(part, row, column, v)`: what a share gives that is not all of its tile, with row
  // and column in the tile.
  template <class Schedule, class Store, class Path, class StorePart>
  static __device__ __forceinline__ void run_shares(const Operands& of, const Schedule& schedule,
                                                    const Store& store, const Path& path,
                                                    const StorePart& store_part) {
    extern __shared__ __align__(1024) unsigned char kf_shared[];
    unsigned char* const tiles = reinterpret_cast<unsigned char*>(
        (reinterpret_cast<size_t>(kf_shared) + 1023) / 1024 * 1024);
    TensorMap* const work = reinterpret_cast<TensorMap*>(tiles + STAGES * STAGE_BYTES);
    Barriers& barriers = *reinterpret_cast<Barriers*>(work + 2);
    TensorMap* const maps = reinterpret_cast<TensorMap*>(of.maps) + 2 * blockIdx.x;
    if (threadIdx.x < 32) {
      make_map<Element>(maps, work, a_of(of));
      make_map<Element>(maps + 1, work + 1, b_of(of));
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
      if (threadIdx.x == 0) copy(of, schedule, maps, shared_address(tiles), barriers, path);
      __syncwarp();
    } else {
      if constexpr (GROUPS > 1) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(GROUPS == 2 ? 232 : 160));
      }
      compute(of, schedule, shared_address(tiles), barriers, store, store_part);
    }
  }

 private:
  // Values of a row as it lies in memory: split operands are padded.
  static __device__ __forceinline__ int row_of(int size) {
    return PARTS == 1 ? size : (size + 7) / 8 * 8;
  }

  static __device__ __forceinline__ Matrices<Element> a_of(const Operands& of) {
    const bool turned = A_ALONG_K;
    return {of.a, row_of(turned ? of.m : of.k), turned ? of.k : of.m, of.batches * PARTS,
            turned ? TILE_K : TILE_M};
  }

  static __device__ __forceinline__ Matrices<Element> b_of(const Operands& of) {
    const bool turned = B_ALONG_K;
    return {of.b,
            row_of(turned         ? of.n
                   : of.b_columns ? of.b_columns
                                  : of.k),
            turned ? of.k : of.n, of.batches * PARTS, turned ? TILE_K : TILE_N};
  }

  // One thread: keeps the stages full.
  template <class Schedule, class Path>
  static __device__ __forceinline__ void copy(const Operands& of, const Schedule& schedule,
                                              const TensorMap* maps, unsigned tiles,
                                              Barriers& barriers, const Path& path) {
    acquire_map(maps);
    acquire_map(maps + 1);
    const Order order(of.m, of.n, of.batches);
    RingPlace<STAGES> place;
    schedule.for_each([&](const Share& share) {
      const Tile tile = order.at(share.tile);
      Path at = path;
      for (int step = 0; step < share.first; ++step) at.advance();
      for (int step = share.first; step < share.last; ++step, at.advance()) {
        const int k = step * TILE_K;
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

  template <class Schedule, class Store, class StorePart>
  static __device__ __forceinline__ void compute(const Operands& of, const Schedule& schedule,
                                                 unsigned tiles, Barriers& barriers,
                                                 const Store& store, const StorePart& store_part) {
    const int group = threadIdx.x / 128 - 1;
    const Order order(of.m, of.n, of.batches);
    RingPlace<STAGES> place;
    schedule.for_each([&](const Share& share) {
      float sum[SUMS];
      if constexpr (SUMS_IN == Sums::CORES) {
        unsigned before = 0;
        for (int step = share.first; step < share.last; ++step) {
          wait(shared_address(&barriers.full[place.stage]), place.parity);
          const unsigned at = tiles + place.stage * STAGE_BYTES;
          begin_products();
          multiply_stage(sum, at + group * 8192, at + PARTS * A_BYTES, step > share.first);
          commit_products();
          wait_products<1>();
          if (step > share.first) arrive_as_warp(before);
          before = shared_address(&barriers.empty[place.stage]);
          place.next();
        }
        wait_products<0>();
        hold(sum);
        arrive_as_warp(before);
      } else {
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sum[i] = 0.0f;
        for (int step = share.first; step < share.last; ++step) {
          wait(shared_address(&barriers.full[place.stage]), place.parity);
          const unsigned at = tiles + place.stage * STAGE_BYTES;
          float part[SUMS];
          begin_products();
          multiply_stage(part, at + group * 8192, at + PARTS * A_BYTES, 0);
          commit_products();
          wait_products<0>();
          hold(part);
          arrive_as_warp(shared_address(&barriers.empty[place.stage]));
          place.next();
#pragma unroll
          for (int i = 0; i < SUMS; ++i) sum[i] += part[i];
        }
      }
      const Tile tile = order.at(share.tile);
      each_four<TILE_N>(sum, [&](int in_group, int in_column, float4 v) {
        const int in_row = group * 64 + in_group;
        const int row = tile.row + in_row, column = tile.column + in_column;
        if (share.part >= 0) {
          store_part(share.part, in_row, in_column, v);
        } else if (row < of.m && column < of.n) {
          store(tile.batch * of.m + row, column, v);
        }
      });
    });
  }

  // The products of all parts of a stage; small by large ones first.
  static __device__ __forceinline__ void multiply_stage(float (&d)[SUMS], unsigned a, unsigned b,
                                                        int keep) {
    if constexpr (PARTS == 1) {
      multiply_parts(d, a, b, keep);
    } else {
      multiply_parts(d, a + A_BYTES, b, keep);
      multiply_parts(d, a, b + B_BYTES, 1);
      multiply_parts(d, a, b, 1);
    }
  }

  static __device__ __forceinline__ void multiply_parts(float (&d)[SUMS], unsigned a, unsigned b,
                                                        int keep) {
    const unsigned long long left = operand(a, 8192), right = operand(b, 8192);
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // 32 bytes of k each
      multiply<TILE_N, Element, A_ALONG_K, B_ALONG_K>(d, left + i * (A_ALONG_K ? 128 : 2),
                                                      right + i * (B_ALONG_K ? 128 : 2), keep | i);
    }
  }
};

template <class Element, int TILE_M, int TILE_N, int STAGES, Layout A_LAYOUT = Layout::MK,
          Layout B_LAYOUT = Layout::NK,
          Sums SUMS_IN = BYTES<Element> == 1 ? Sums::REGISTERS : Sums::CORES>
using Product = ProductOf<Element, TILE_M, TILE_N, STAGES, A_LAYOUT, B_LAYOUT, 1, SUMS_IN>;

}  // namespace kf
