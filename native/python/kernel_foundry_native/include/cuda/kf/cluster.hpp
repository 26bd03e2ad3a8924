// Reductions over the blocks of a cluster, which read each other's shared memory. Hopper and newer.
//
//   kf::cluster_rank(), kf::cluster_blocks()     which block of the cluster this is, of how many
//   kf::meet_cluster()                           waits for all threads of all its blocks
//   kf::cluster_reduce<THREADS>(value, kf::Max())   over blocks of THREADS = blockDim.x threads
//   each;
//                                                all threads get the result, the same on every run
//
// A kernel has clusters by `__cluster_dims__(BLOCKS, 1, 1)` before its name, BLOCKS 2, 4 or 8, and
// a grid that BLOCKS divides; the plan needs nothing else. For rows that are long and few: one row
// a cluster, its blocks having neighbouring parts. All threads of all blocks have to call.
#pragma once

#include <kf/reduce.hpp>

namespace kf {

__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ int cluster_blocks() {
  int blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// A word of the same shared variable in another block of the cluster.
__device__ __forceinline__ unsigned word_of_block(const unsigned* shared, int rank) {
  unsigned word;
  asm volatile("{\n.reg .b32 at;\n"
               "mapa.shared::cluster.u32 at, %1, %2;\n"
               "ld.shared::cluster.u32 %0, [at];\n}"
               : "=r"(word)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))), "r"(rank)
               : "memory");
  return word;
}

template <int THREADS, class T, class Operation>
__device__ __forceinline__ T cluster_reduce(T value, Operation operation) {
  constexpr int WORDS = sizeof(T) / 4;
  __shared__ unsigned partial[WORDS];
  value = block_reduce<THREADS>(value, operation);
  if (threadIdx.x == 0) memcpy(partial, &value, sizeof(T));
  meet_cluster();
  for (int rank = 0; rank < cluster_blocks(); ++rank) {
    unsigned words[WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; ++i) words[i] = word_of_block(partial + i, rank);
    T other;
    memcpy(&other, words, sizeof(T));
    value = rank == 0 ? other : operation(value, other);
  }
  meet_cluster();  // the next reduction writes there, and nobody leaves while others read
  return value;
}

}  // namespace kf
