// Barriers in shared memory that count threads and bytes (mbarrier), for Hopper and newer.
//
// A barrier is an unsigned long long in shared memory; functions take its 32-bit shared address.
// It completes a phase when `count` arrivals and all announced bytes are there. A wait names the
// parity of the phase that it waits for: 0 for the first one, then 1, 0, 1, ...
#pragma once

namespace kf {

// The address of a shared variable as instructions take it.
__device__ __forceinline__ unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// One thread, before the block meets; then `publish_barriers` by the same thread.
__device__ __forceinline__ void init_barrier(unsigned barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// One arrival of a warp, when all of it is there.
__device__ __forceinline__ void arrive_as_warp(unsigned barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive(barrier);
}

// Arrives, and announces bytes that copies will bring.
__device__ __forceinline__ void arrive_expecting(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
  asm volatile("{\n.reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n"
               "@done bra over;\n"
               "bra again;\n"
               "over:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

// A place in a ring of stages, and the parity to wait for there.
template <int STAGES>
struct RingPlace {
  int stage = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void next() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace kf
