{# Register tiles; STAGES - 1 tiles are copied ahead, past the registers. #}
{% include "cuda/kernels/async_copy.cuh" %}
{% include "cuda/kernels/tile_operands_async.cuh" %}
{% include "cuda/kernels/tile_head.cuh" %}
{% include "cuda/kernels/tile_place.cuh" %}
#pragma unroll
  for (int ahead = 0; ahead < STAGES - 1; ++ahead) {
    if (first + ahead < last) {
      Left::copy(left[ahead], {{ left }}, m0, (first + ahead) * BK);
      Right::copy(right[ahead], {{ right }}, n0, (first + ahead) * BK);
    }
    end_of_copies();
  }
#pragma unroll 1
  for (int tile = first; tile < last; ++tile) {
    const int now = (tile - first) % STAGES, coming = tile + STAGES - 1;
    wait_for_copies();
    __syncthreads();
    if (coming < last) {
      Left::copy(left[(coming - first) % STAGES], {{ left }}, m0, coming * BK);
      Right::copy(right[(coming - first) % STAGES], {{ right }}, n0, coming * BK);
    }
    end_of_copies();
{% include "cuda/kernels/tile_multiply.cuh" %}
  }
{% include "cuda/kernels/tile_write.cuh" %}
