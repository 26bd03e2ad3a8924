// Sums of a product in a warp's registers, as mma.sync and wgmma leave them, by four neighbours.
//
// Of 16 rows x N columns a lane has in d[4 j + e]
//   row lane / 4 + 8 (e / 2), column 8 j + 2 (lane % 4) + e % 2.
// `each_four_of_warp<N>(d, body)`: body(row, column, float4 v), N / 8 turns a lane.
// `place_of_four<N>(turn, lane)`, `turn_of<N>(row, column)`: where a turn's four are, and back.
#pragma once

namespace kf {

struct Place {
  int row, column;
};

template <int N>
__device__ __forceinline__ Place place_of_four(int turn, int lane) {
  const int half = turn / (N / 16), j = turn % (N / 16) * 2;
  return {lane / 4 + 8 * half, 8 * (j + lane % 2) + lane % 4 / 2 * 4};
}

template <int N>
__device__ __forceinline__ int turn_of(int row, int column) {
  return row % 16 / 8 * (N / 16) + column / 16;
}

// A lane has two neighbours of each eight columns; two lanes swap for four.
template <int N, class Body>
__device__ __forceinline__ void each_four_of_warp(const float (&d)[N / 2], const Body& body) {
  const bool odd = threadIdx.x % 2;
#pragma unroll
  for (int turn = 0; turn < N / 8; ++turn) {
    const float* const low = d + turn % (N / 16) * 8 + turn / (N / 16) * 2;
    const float* const high = low + 4;
    const float x = __shfl_xor_sync(~0u, odd ? low[0] : high[0], 1);
    const float y = __shfl_xor_sync(~0u, odd ? low[1] : high[1], 1);
    const Place place = place_of_four<N>(turn, threadIdx.x % 32);
    body(place.row, place.column,
         odd ? make_float4(x, y, high[0], high[1]) : make_float4(low[0], low[1], x, y));
  }
}

}  // namespace kf
