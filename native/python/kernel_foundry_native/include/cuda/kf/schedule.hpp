// Which tiles of a result a block makes, in which order, and from which values of k.
//
//   kf::TileOrder<TILE_M, TILE_N> order(m, n, batches)   all tiles, `count` of them; `at(i)` is
//   one.
//       Neighbours in order read the same rows and columns of the operands: strips of 8 tiles of
//       rows, so that what runs at a time is in the L2.
//   kf::Persistent                a block makes tiles blockIdx.x, blockIdx.x + gridDim.x, ...
//   kf::StreamKShares             k of the last tiles is dealt out, so that all blocks end together
//
// `for_each(body)` of a schedule calls `body(Share)`. For kernels of one's own as for kf::Product:
//   kf::Persistent(order.count, steps).for_each([&](kf::Share share) {
//     const kf::Tile tile = order.at(share.tile);
//     for (int step = share.first; step < share.last; ++step) ...
//   });
#pragma once

namespace kf {

struct Tile {
  int row, column, batch;  // of its first value
};

// Steps of k, [first, last), of a tile. `part` is -1 where that is all of it; else the place, two
// for each block, that its sums are written to.
struct Share {
  int tile, first, last, part;
};

template <int TILE_M, int TILE_N>
struct TileOrder {
  static constexpr int STRIP = 8;
  int high, across, count;

  __device__ __forceinline__ TileOrder(int m, int n, int batches)
      : high((m + TILE_M - 1) / TILE_M), across((n + TILE_N - 1) / TILE_N),
        count(high * across * batches) {}

  __device__ __forceinline__ Tile at(int index) const {
    const int each = high * across, batch = index / each, in_batch = index - batch * each;
    const int strip = in_batch / (STRIP * across), first = strip * STRIP;
    const int rows = min(STRIP, high - first), rest = in_batch - strip * (STRIP * across);
    const int column = rest / rows, row = first + rest - column * rows;
    return {row * TILE_M, column * TILE_N, batch};
  }
};

struct Persistent {
  int tiles, steps;

  __device__ __forceinline__ Persistent(int tiles, int steps) : tiles(tiles), steps(steps) {}

  template <class Body>
  __device__ __forceinline__ void for_each(const Body& body) const {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) body(Share{tile, 0, steps, -1});
  }
};

// Tiles that do not divide among the blocks leave some of them idle at the end. Here the first
// ones, fewer than two a block, are `shared`: their steps lie in a row, and each block has as many
// of them as any other, to within one. The rest is whole, as Persistent has it.
struct StreamKShares {
  int tiles, steps, blocks, shared;

  // `of_blocks`: how many there are; those beyond a step each have nothing to do.
  __device__ __forceinline__ StreamKShares(int tiles, int steps, int of_blocks)
      : tiles(tiles), steps(steps), blocks(tiles <= of_blocks / steps ? tiles * steps : of_blocks),
        shared(tiles % blocks == 0 ? 0 : tiles - max(tiles / blocks - 1, 0) * blocks) {}

  // The first shared step of a block, counted over all shared tiles.
  __device__ __forceinline__ int first_step(int block) const {
    return static_cast<int>(static_cast<long long>(shared) * steps * block / blocks);
  }

  // The block that has a shared step.
  __device__ __forceinline__ int block_of(int step) const {
    return static_cast<int>(((step + 1ll) * blocks - 1) / (static_cast<long long>(shared) * steps));
  }

  template <class Body>
  __device__ __forceinline__ void for_each(const Body& body) const {
    const int block = blockIdx.x;
    if (block >= blocks) return;
    const int first = first_step(block), last = first_step(block + 1);
    int step = first, tile = shared + block;
    while (step < last || tile < tiles) {
      Share share{tile, 0, steps, -1};
      if (step < last) {
        share.tile = step / steps;
        share.first = step - share.tile * steps;
        share.last = min(steps, last - share.tile * steps);
        if (share.last - share.first < steps) share.part = 2 * block + (step > first);
        step += share.last - share.first;
      } else {
        tile += blocks;
      }
      body(share);  // once in the text: it may be a whole kernel
    }
  }

  // Where the sums of a shared tile are: in the part `first`, then, in order of k, in 2 * block for
  // each block behind `block` up to `last`. Whole, and in none, where these two are the same.
  struct Parts {
    int first, block, last;
  };

  __device__ __forceinline__ Parts parts_of(int tile) const {
    const int begin = tile * steps, block = block_of(begin);
    return {2 * block + (first_step(block) < begin), block, block_of(begin + steps - 1)};
  }
};

}  // namespace kf
