// Matrix products whose tiles do not fill the device: k is dealt out too (stream-K). Hopper.
//
// StreamK<P>, P a kf::Product or kf::SplitProduct, is two kernels. In `run`, launched as P's own
// but with any number of blocks up to device.compute_units, each block has as many steps of k as
// any other; where a tile's are in several blocks, their sums go to `parts`. `finish` adds these,
// always in the same order, and stores the results. `store` is that of P, the same in both.
//
// parts: blocks x 2 x TILE_M x TILE_N of float. `finish` runs in blocks of 256 threads, as many as
// fill the device, such as 4 * device.compute_units; `blocks` is the number that `run` had.
// For SplitProduct, `store` is P::scaled(operands, a_exponents, b_exponents, store).
#pragma once

#include <kf/product.hpp>

namespace kf {

template <class P>
struct StreamK {
  using Operands = typename P::Operands;
  static constexpr int FOURS = P::TILE_M * P::TILE_N / 4;  // of a part; a warp group's lie together

  template <class Store>
  static __device__ __forceinline__ void run(const Operands& of, float* parts, const Store& store) {
    const StreamKShares shares(P::tiles_of(of), P::steps_of(of), gridDim.x);
    P::run_shares(
        of, shares, store, typename P::AlongK(), [=](int part, int row, int column, float4 v) {
          const int turn = row / 64 * (P::TILE_N / 8) + turn_of<P::TILE_N>(row, column);
          reinterpret_cast<float4*>(parts)[place_of(part) + turn * 128 + threadIdx.x % 128] = v;
        });
  }

  template <class Store>
  static __device__ __forceinline__ void finish(const Operands& of, const float* parts, int blocks,
                                                const Store& store) {
    const typename P::Order order(of.m, of.n, of.batches);
    const StreamKShares shares(order.count, P::steps_of(of), blocks);
    constexpr int PIECES = FOURS / 256, TURNS = P::TILE_N / 8;
    for (int i = blockIdx.x; i < shares.shared * PIECES; i += gridDim.x) {
      const int number = i / PIECES;
      const StreamKShares::Parts found = shares.parts_of(number);
      if (found.block == found.last) continue;
      const int four = (i - number * PIECES) * 256 + threadIdx.x, turn = four / 128;
      float4 sum = reinterpret_cast<const float4*>(parts)[place_of(found.first) + four];
#pragma unroll 4
      for (int block = found.block + 1; block <= found.last; ++block) {
        const float4 v = reinterpret_cast<const float4*>(parts)[place_of(2 * block) + four];
        sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
      }
      const Tile tile = order.at(number);
      const Place place = place_of_four<P::TILE_N>(turn % TURNS, threadIdx.x % 32);
      const int row = tile.row + turn / TURNS * 64 + threadIdx.x / 32 % 4 * 16 + place.row;
      const int column = tile.column + place.column;
      if (row < of.m && column < of.n) store(tile.batch * of.m + row, column, sum);
    }
  }

 private:
  static __device__ __forceinline__ size_t place_of(int part) {
    return static_cast<size_t>(part) * FOURS;
  }
};

}  // namespace kf
