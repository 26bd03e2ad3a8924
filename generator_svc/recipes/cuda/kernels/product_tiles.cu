{# Register tiles; the next tile passes through registers. #}
{% include "cuda/kernels/tile_operands.cuh" %}
{% include "cuda/kernels/tile_head.cuh" %}
{% include "cuda/kernels/tile_place.cuh" %}
  Left next_left;
  Right next_right;
  if (first < last) {
    next_left.load({{ left }}, m0, first * BK);
    next_right.load({{ right }}, n0, first * BK);
    next_left.store(left[0]);
    next_right.store(right[0]);
  }
  __syncthreads();
#pragma unroll 1
  for (int tile = first; tile < last; ++tile) {
    const int now = (tile - first) % STAGES;
    if (tile + 1 < last) {  // on its way while this tile is multiplied
      next_left.load({{ left }}, m0, (tile + 1) * BK);
      next_right.load({{ right }}, n0, (tile + 1) * BK);
    }
{% include "cuda/kernels/tile_multiply.cuh" %}
    if (tile + 1 < last) {
      next_left.store(left[(tile + 1 - first) % STAGES]);
      next_right.store(right[(tile + 1 - first) % STAGES]);
    }
    __syncthreads();
  }
{% include "cuda/kernels/tile_write.cuh" %}
