// Copies to shared memory that run while threads compute (cp.async), for GPUs from sm_80 on.
//
//   copy_16(to, from, is_inside)   a thread: 16 bytes, both sides aligned to 16; zeros if outside
//   commit_copies()                what this thread began since the last commit is a group
//   wait_copies<PENDING>()         until at most PENDING groups of this thread are unfinished; a
//                                  barrier behind it makes them visible to the block
#pragma once

namespace kf {

// `to` as `__cvta_generic_to_shared` gives it.
__device__ __forceinline__ void copy_16(unsigned to, const void* from, bool is_inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(is_inside ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

}  // namespace kf
