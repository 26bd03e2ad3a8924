// Tensor maps made on the device, and the copies of tiles (TMA) that use them. Hopper (sm_90a).
//
// A plan needs no feature for them: it gives a kernel scratch memory, `empty((blocks, 64),
// "int32")` for two maps a block, and one warp of the block writes them there.
#pragma once

#include <kf/formats.hpp>
#include <kf/mbarrier.hpp>

namespace kf {

struct alignas(128) TensorMap {
  unsigned words[32];
};

// A stack of matrices in global memory: planes x rows x columns, contiguous, the address and the
// bytes of a row multiples of 16. Boxes of 128 bytes of columns and `box_rows` rows are copied,
// with the 128-byte swizzle; what is outside becomes 0. float is rounded to TF32.
template <class Element>
struct Matrices {
  const Element* data;
  int columns, rows, planes;
  int box_rows;
};

// Writes the map to `to`, a 128-byte aligned place in global memory. Called by all of one warp;
// `work` is in shared memory and must not be read or written by others meanwhile. Before a thread
// uses the map, it calls `acquire_map` behind a barrier.
template <class Element>
__device__ __forceinline__ void make_map(TensorMap* to, TensorMap* work,
                                         const Matrices<Element>& of) {
  // As tensormap.replace numbers formats.
  constexpr int FORMAT = BYTES<Element> == 1    ? 0
                         : IS_TF32<Element>     ? 11
                         : IS_BFLOAT16<Element> ? 10
                                                : 6;
  const unsigned lane = threadIdx.x % 32;
  const unsigned at = shared_address(work);
  work->words[lane] = 0;
  __syncwarp();
  if (lane == 0) {
    const unsigned long long row_bytes =
        static_cast<unsigned long long>(BYTES<Element>) * of.columns;
    const unsigned long long plane_bytes = row_bytes * of.rows;
#define KF_FIELD(field, type, constraint, value)                                                   \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type ", %1;" ::"r"(at),       \
               constraint(value)                                                                   \
               : "memory")
    KF_FIELD("global_address", "b64 [%0]", "l", of.data);
    KF_FIELD("rank", "b32 [%0]", "r", 2);  // less one
    KF_FIELD("box_dim", "b32 [%0], 0", "r", LINE<Element>);
    KF_FIELD("box_dim", "b32 [%0], 1", "r", of.box_rows);
    KF_FIELD("box_dim", "b32 [%0], 2", "r", 1);
    KF_FIELD("global_dim", "b32 [%0], 0", "r", of.columns);
    KF_FIELD("global_dim", "b32 [%0], 1", "r", of.rows);
    KF_FIELD("global_dim", "b32 [%0], 2", "r", of.planes);
    KF_FIELD("global_stride", "b64 [%0], 0", "l", row_bytes);
    KF_FIELD("global_stride", "b64 [%0], 1", "l", plane_bytes);
    KF_FIELD("element_stride", "b32 [%0], 0", "r", 1);
    KF_FIELD("element_stride", "b32 [%0], 1", "r", 1);
    KF_FIELD("element_stride", "b32 [%0], 2", "r", 1);
    KF_FIELD("interleave_layout", "b32 [%0]", "n", 0);
    KF_FIELD("swizzle_mode", "b32 [%0]", "n", 3);
    KF_FIELD("fill_mode", "b32 [%0]", "n", 0);
    KF_FIELD("elemtype", "b32 [%0]", "n", FORMAT);
#undef KF_FIELD
  }
  __syncwarp();
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
      " [%0], [%1], 128;" ::"l"(__cvta_generic_to_global(to)),
      "r"(at)
      : "memory");
}

__device__ __forceinline__ void acquire_map(const TensorMap* map) {
  asm volatile(
      "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(__cvta_generic_to_global(map))
      : "memory");
}

// One thread: copies the box that begins at (plane, row, column) to shared memory (1024-byte
// aligned) and reports its bytes to `barrier`.
__device__ __forceinline__ void copy_box(unsigned to, const TensorMap* map, int column, int row,
                                         int plane, unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
               "l"(__cvta_generic_to_global(map)), "r"(column), "r"(row), "r"(plane), "r"(barrier)
               : "memory");
}

}  // namespace kf
