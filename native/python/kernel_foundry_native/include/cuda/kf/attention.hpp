// Attention on Hopper's tensor cores: softmax(scale Q K^T) V, with no score written to memory.
//
// Attention<Element, HEAD, TILE_K, STAGES, CAUSAL>::run is a whole kernel. Q, K and V are planes x
// length x HEAD of __half or __nv_bfloat16, contiguous, a plane for each head of each batch.
// Products are summed in float32, and so is the softmax; its exponentials are rounded to Element.
//
// Launch min(tiles, device.compute_units) blocks of 384 threads, tiles = planes * cdiv(q_length,
// 128), with 256 * HEAD + 4 * STAGES * TILE_K * HEAD + 2048 bytes of dynamic shared memory.
// One warp copies tiles ahead (TMA); two warp groups have 64 rows of Q each. A group's product of
// exponentials and V runs while the next scores are computed, and its softmax meanwhile.
//
//   store(row, column, float4 v): four neighbours of a row of the result. Rows count over all
//   planes of Q.
#pragma once

#include <kf/product.hpp>

namespace kf {

template <class Element, int HEAD, int TILE_K, int STAGES, bool CAUSAL>
struct Attention {
  static_assert(BYTES<Element> == 2, "Element is __half or __nv_bfloat16");
  static_assert(HEAD == 64 || HEAD == 128, "HEAD is 64 or 128");
  static_assert(TILE_K == 64 || TILE_K == 128, "TILE_K is 64 or 128");

  static constexpr int GROUPS = 2, TILE_Q = 64 * GROUPS;
  static constexpr int THREADS = 128 * (GROUPS + 1);
  static constexpr unsigned Q_BYTES = TILE_Q * HEAD * 2, K_BYTES = TILE_K * HEAD * 2;
  static constexpr unsigned SHARED = Q_BYTES + 2 * STAGES * K_BYTES + 2048;
  static constexpr unsigned NEAR_L2 = 24u << 20;  // bytes of K and V that stay there

  struct Operands {
    const Element *q, *k, *v;
    int* maps;  // 96 for each block, 128-byte aligned scratch
    int planes, q_length, k_length;
    int group;    // planes of Q that share one of K and V
    float scale;  // of the scores, above 0, such as 1 / sqrt(HEAD)
  };

  template <class Store>
  static __device__ __forceinline__ void run(const Operands& of, const Store& store) {
    extern __shared__ __align__(1024) unsigned char kf_shared[];
    unsigned char* const tiles = reinterpret_cast<unsigned char*>(
        (reinterpret_cast<size_t>(kf_shared) + 1023) / 1024 * 1024);
    TensorMap* const work = reinterpret_cast<TensorMap*>(tiles + Q_BYTES + 2 * STAGES * K_BYTES);
    Barriers& barriers = *reinterpret_cast<Barriers*>(work + 3);
    TensorMap* const maps = reinterpret_cast<TensorMap*>(of.maps) + 3 * blockIdx.x;
    if (threadIdx.x < 32) {
      const int k_planes = of.planes / of.group;
      make_map<Element>(maps, work, {of.q, HEAD, of.q_length, of.planes, TILE_Q});
      make_map<Element>(maps + 1, work + 1, {of.k, HEAD, of.k_length, k_planes, TILE_K});
      make_map<Element>(maps + 2, work + 2, {of.v, HEAD, of.k_length, k_planes, TILE_K});
    }
    if (threadIdx.x == 32) {
      init_pair(barriers.q);
      for (int s = 0; s < STAGES; ++s) {
        init_pair(barriers.k[s]);
        init_pair(barriers.v[s]);
      }
      publish_barriers();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(40));
      if (threadIdx.x == 0) copy(of, maps, shared_address(tiles), barriers);
      __syncwarp();
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(232));
      compute(of, shared_address(tiles), barriers, store);
    }
  }

 private:
  struct Pair {
    unsigned long long full, empty;
  };
  struct Barriers {
    Pair q, k[STAGES], v[STAGES];
  };

  struct Tile {
    int plane, row, steps;  // steps: tiles of K and V that count
  };

  static __device__ __forceinline__ void init_pair(Pair& pair) {
    init_barrier(shared_address(&pair.full), 1);
    init_barrier(shared_address(&pair.empty), 4 * GROUPS);
  }

  // Calls `body` for each tile of this block: a few planes at a time, whose K and V fit into the
  // L2, and of these the longest rows first, every other time in the opposite order.
  template <class Body>
  static __device__ __forceinline__ void for_each_tile(const Operands& of, const Body& body) {
    const int high = (of.q_length + TILE_Q - 1) / TILE_Q, all = high * of.planes;
    const unsigned plane_bytes = 4u * HEAD * of.k_length;
    const int near = min(max(static_cast<int>(NEAR_L2 / plane_bytes), 1) * of.group, of.planes);
    bool turned = false;
    for (int first = 0; first < all; first += gridDim.x, turned = !turned) {
      const int index = first + (turned ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
      if (index >= all) continue;
      const int strip = index / (near * high), rest = index - strip * near * high;
      const int planes = min(near, of.planes - strip * near);
      const int down = rest / planes;
      const int row = (CAUSAL ? high - 1 - down : down) * TILE_Q;
      const int last = CAUSAL ? min(row + TILE_Q, of.k_length) : of.k_length;
      body(Tile{strip * near + rest - down * planes, row, (last + TILE_K - 1) / TILE_K});
    }
  }

  // One thread: keeps the stages full.
  static __device__ __forceinline__ void copy(const Operands& of, const TensorMap* maps,
                                              unsigned tiles, Barriers& barriers) {
    for (int i = 0; i < 3; ++i) acquire_map(maps + i);
    RingPlace<STAGES> at;
    unsigned q_parity = 1;
    for_each_tile(of, [&](const Tile& tile) {
      wait(shared_address(&barriers.q.empty), q_parity);
      q_parity ^= 1;
      copy_tile(tiles, maps, tile.plane, tile.row, TILE_Q, shared_address(&barriers.q.full));
      for (int step = 0; step < tile.steps; ++step) {
#pragma unroll
        for (int which = 0; which < 2; ++which) {
          Pair& pair = which ? barriers.v[at.stage] : barriers.k[at.stage];
          wait(shared_address(&pair.empty), at.parity ^ 1);
          copy_tile(tiles + Q_BYTES + (2 * at.stage + which) * K_BYTES, maps + 1 + which,
                    tile.plane / of.group, step * TILE_K, TILE_K, shared_address(&pair.full));
        }
        at.next();
      }
    });
  }

  static __device__ __forceinline__ void copy_tile(unsigned to, const TensorMap* map, int plane,
                                                   int row, int rows, unsigned full) {
    arrive_expecting(full, rows * HEAD * 2);
#pragma unroll
    for (int i = 0; i < HEAD / 64; ++i)
      copy_box(to + i * rows * 128, map, 64 * i, row, plane, full);
  }

  // What a thread knows of its two rows.
  struct Rows {
    float top[2], sum[2];
  };

  template <class Store>
  static __device__ __forceinline__ void compute(const Operands& of, unsigned tiles,
                                                 Barriers& barriers, const Store& store) {
    const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
    const int in_tile = group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    const unsigned q = tiles + group * 8192;
    const float scale = of.scale * 1.4426950408889634f;  // for powers of two
    RingPlace<STAGES> keys, values;
    unsigned q_parity = 0;
    for_each_tile(of, [&](const Tile& tile) {
      const int row = tile.row + in_tile;
      float score[TILE_K / 2], out[HEAD / 2], shrink[2];
      unsigned weights[TILE_K / 16][4];
      Rows rows{{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
      wait(shared_address(&barriers.q.full), q_parity);
      q_parity ^= 1;
      wait(shared_address(&barriers.k[keys.stage].full), keys.parity);
      begin_products();
      multiply_scores(score, q, k_tile(tiles, keys));
      commit_products();
      wait_products<0>();
      hold(score);
      arrive_as_warp(shared_address(&barriers.k[keys.stage].empty));
      keys.next();
      soften(of, score, rows, shrink, row, 0, tile, scale);
      weigh(score, weights);
      for (int step = 1; step < tile.steps; ++step) {
        wait(shared_address(&barriers.k[keys.stage].full), keys.parity);
        begin_products();
        multiply_scores(score, q, k_tile(tiles, keys));
        commit_products();
        wait(shared_address(&barriers.v[values.stage].full), values.parity);
        multiply_values(out, weights, v_tile(tiles, values), step > 1);
        commit_products();
        wait_products<1>();
        hold(score);
        arrive_as_warp(shared_address(&barriers.k[keys.stage].empty));
        keys.next();
        soften(of, score, rows, shrink, row, step * TILE_K, tile, scale);
        wait_products<0>();
        hold(out);
        arrive_as_warp(shared_address(&barriers.v[values.stage].empty));
        values.next();
        weigh(score, weights);
#pragma unroll
        for (int i = 0; i < HEAD / 2; ++i) out[i] *= shrink[i / 2 % 2];
      }
      arrive_as_warp(shared_address(&barriers.q.empty));
      wait(shared_address(&barriers.v[values.stage].full), values.parity);
      begin_products();
      multiply_values(out, weights, v_tile(tiles, values), tile.steps > 1);
      commit_products();
      wait_products<0>();
      hold(out);
      arrive_as_warp(shared_address(&barriers.v[values.stage].empty));
      values.next();
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float sum = rows.sum[half];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        shrink[half] = 1.0f / sum;
      }
#pragma unroll
      for (int i = 0; i < HEAD / 2; ++i) out[i] *= shrink[i / 2 % 2];
      each_four<HEAD>(out, [&](int in_group, int column, float4 v) {
        const int to = tile.row + group * 64 + in_group;
        if (to < of.q_length) store(tile.plane * of.q_length + to, column, v);
      });
    });
  }

  static __device__ __forceinline__ unsigned k_tile(unsigned tiles, const RingPlace<STAGES>& at) {
    return tiles + Q_BYTES + 2 * at.stage * K_BYTES;
  }

  static __device__ __forceinline__ unsigned v_tile(unsigned tiles, const RingPlace<STAGES>& at) {
    return k_tile(tiles, at) + K_BYTES;
  }

  static __device__ __forceinline__ void multiply_scores(float (&score)[TILE_K / 2], unsigned q,
                                                         unsigned k) {
#pragma unroll
    for (int i = 0; i < HEAD / 16; ++i) {
      const unsigned long long left = operand(q + i / 4 * TILE_Q * 128, 8192);
      const unsigned long long right = operand(k + i / 4 * TILE_K * 128, 8192);
      multiply<TILE_K, Element>(score, left + i % 4 * 2, right + i % 4 * 2, i);
    }
  }

  static __device__ __forceinline__ void multiply_values(float (&out)[HEAD / 2],
                                                         const unsigned (&weights)[TILE_K / 16][4],
                                                         unsigned v, bool keep) {
    const unsigned long long right = operand(v, TILE_K * 128);
#pragma unroll
    for (int i = 0; i < TILE_K / 16; ++i) {
      multiply_held<HEAD, Element, 1>(out, weights[i], right + i * 128, keep || i > 0);
    }
  }

  static __device__ __forceinline__ void weigh(const float (&score)[TILE_K / 2],
                                               unsigned (&weights)[TILE_K / 16][4]) {
#pragma unroll
    for (int i = 0; i < TILE_K / 16; ++i) rounded<Element>(score, i, weights[i]);
  }

  // Makes exponentials of scores of `first` and the columns behind it, and tells what the sums of
  // before are to be multiplied by.
  static __device__ __forceinline__ void soften(const Operands& of, float (&score)[TILE_K / 2],
                                                Rows& rows, float (&shrink)[2], int row, int first,
                                                const Tile& tile, float scale) {
    const int lane = threadIdx.x % 32;
    const bool is_ragged = first + TILE_K > of.k_length;
    if (is_ragged || (CAUSAL && first + TILE_K - 1 > tile.row)) {
#pragma unroll
      for (int i = 0; i < TILE_K / 2; ++i) {
        const int column = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
        const bool is_behind = CAUSAL && column > row + i / 2 % 2 * 8;
        if (column >= of.k_length || is_behind) score[i] = -INFINITY;
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float before = rows.top[half];
      float top = before;
#pragma unroll
      for (int i = 0; i < TILE_K / 2; i += 4) {
        top = fmaxf(top, fmaxf(score[i + 2 * half], score[i + 2 * half + 1]));
      }
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
      rows.top[half] = top;
      // A row of which nothing counts yet has no maximum.
      const float base = top == -INFINITY ? 0.0f : top * scale;
      shrink[half] = power_of_two(before * scale - base);
      float sum = rows.sum[half] * shrink[half];
#pragma unroll
      for (int i = 0; i < TILE_K / 2; i += 4) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          score[i + e] = power_of_two(score[i + e] * scale - base);
          sum += score[i + e];
        }
      }
      rows.sum[half] = sum;
    }
  }

  static __device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
  }
};

}  // namespace kf
